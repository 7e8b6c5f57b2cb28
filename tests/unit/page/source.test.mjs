import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

// A browser's clock, network and visibility, as far as a source needs them.
globalThis.document = Object.assign(new EventTarget(), { hidden: false });
globalThis.window = new EventTarget();
const timers = new Map();
globalThis.setInterval = (work, ms) => {
  timers.set(timers.size + 1, { work, ms });
  return timers.size;
};
globalThis.clearInterval = (number) => timers.delete(number);
const asked = [];
let answer;
globalThis.fetch = async (url, options) => {
  asked.push({ url, ...options });
  if (answer instanceof Error) throw answer;
  return answer;
};
console.warn = () => {};

const { Source } = await import("../../../services/monitoring/monitoring/static/page/source.js");

const respond = (status, body, headers = {}) => {
  answer = { status, headers: new Headers(headers), text: async () => JSON.stringify(body) };
};
const tick = () => [...timers.values()].forEach(({ work }) => work());
const show = (hidden) => {
  document.hidden = hidden;
  document.dispatchEvent(new Event("visibilitychange"));
};
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Begins a source; returns it with what it told of its reads. */
const begin = async (isAnswer = Array.isArray) => {
  const told = [];
  const source = new Source("/data", 2, (one) => told.push([one.data, one.failure]), isAnswer);
  source.start();
  await settled();
  return { source, told };
};

beforeEach(() => {
  timers.clear();
  asked.length = 0;
  document.hidden = false;
  respond(200, [1]);
});

test("it reads at once, and then every so many seconds", async () => {
  const { source, told } = await begin();
  assert.deepEqual([...timers.values()].map(({ ms }) => ms), [2000]);
  tick();
  await settled();
  assert.deepEqual(told, [[[1], ""], [[1], ""]]);
  source.stop();
});

test("while its tab is hidden it reads nothing, and once it is shown at once", async () => {
  const { source } = await begin();
  show(true);
  for (const _ of [1, 2, 3]) tick();
  window.dispatchEvent(new Event("online"));
  await settled();
  assert.equal(asked.length, 1);
  show(false);
  await settled();
  assert.equal(asked.length, 2);
  source.stop();
});

test("it reads when the network comes and goes", async () => {
  const { source } = await begin();
  for (const name of ["online", "offline"]) {
    window.dispatchEvent(new Event(name));
    await settled();
  }
  assert.equal(asked.length, 3);
  source.stop();
});

test("one that was stopped has no timer, wakes at nothing and tells nothing", async () => {
  const { source, told } = await begin();
  tick();
  source.stop(); // while that read is under way
  assert.equal(timers.size, 0);
  show(false);
  window.dispatchEvent(new Event("online"));
  window.dispatchEvent(new Event("offline"));
  await settled();
  assert.equal(asked.length, 2);
  assert.equal(told.length, 1);
});

test("one read at a time", async () => {
  const { source } = await begin();
  for (const _ of [1, 2, 3]) tick();
  await settled();
  assert.equal(asked.length, 2);
  source.stop();
});

test("it asks for what has changed, and keeps the rest", async () => {
  respond(200, [1], { ETag: '"a"', "X-Taken-At": "5" });
  const { source } = await begin();
  assert.deepEqual(asked[0].headers, {});
  respond(304, null, { "X-Taken-At": "9" });
  tick();
  await settled();
  assert.deepEqual(asked[1].headers, { "If-None-Match": '"a"' });
  assert.equal(asked[1].cache, "no-store");
  assert.deepEqual([source.data, source.takenAt, source.failure], [[1], 9, ""]);
  source.stop();
});

test("a failure keeps the data, with the reason and since when", async () => {
  const { source } = await begin();
  const cases = [
    [503, { "X-Circuit-State": "open" }, "open"],
    [503, { "X-Circuit-State": "busy" }, "busy"],
    [429, {}, "unknown"],
    [500, {}, "unknown"],
    [200, { "X-Circuit-State": "open" }, "open"],
    [401, {}, "ended"],
  ];
  for (const [status, headers, failure] of cases) {
    respond(status, null, headers);
    tick();
    await settled();
    assert.deepEqual([source.data, source.failure], [[1], failure]);
  }
  const since = source.failingSince;
  answer = new Error("the network is gone");
  tick();
  await settled();
  assert.deepEqual([source.failure, source.failingSince], ["network", since]);
  respond(403, { detail: "not for you" });
  tick();
  await settled();
  assert.deepEqual([source.failure, source.refused], ["", "not for you"]);
  respond(200, [2]);
  tick();
  await settled();
  assert.deepEqual([source.data, source.failure, source.refused], [[2], "", ""]);
  source.stop();
});

test("a 200 that says something else is a failed read, and what was known stays", async () => {
  const good = { data: [{ staff_id: 1 }] };
  for (const wrong of [{}, "x", null, 5, [], { data: 1 }, { data: [null] }, { data: ["x"] }, undefined]) {
    respond(200, good, { ETag: "good" });
    const plain = new Source("/data", 2, () => {});
    plain.start();
    await settled();
    assert.equal(plain.failure, "");
    respond(200, wrong, { "X-Taken-At": "99", ETag: "wrong" });
    tick();
    await settled();
    assert.equal(plain.failure, "unknown", JSON.stringify(wrong));
    assert.deepEqual(plain.data, good);
    assert.notEqual(plain.takenAt, 99);
    tick();
    await settled();
    assert.equal(asked.at(-1).headers["If-None-Match"], "good");
    plain.stop();
  }
});
