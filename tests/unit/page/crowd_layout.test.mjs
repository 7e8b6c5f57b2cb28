import assert from "node:assert/strict";
import { test } from "node:test";

import {
  packCrowd,
  rowMiddle,
  rowWidth,
} from "../../../services/monitoring/monitoring/static/drawings/crowd_layout.js";
import { SCALE, figure } from "./helpers.mjs";

const people = (count, more = () => ({})) =>
  Array.from({ length: count }, (_, order) => figure(`${100 + order}`, "r", { order, ...more(order) }));
const pack = (crowd, width, rows, more = {}) =>
  packCrowd("r", crowd, { width, rows, ...more }, SCALE);
const texts = (rows) => rows.flat().map((marker) => marker.text);

test("who fits is shown, and the others are counted", () => {
  assert.deepEqual(texts(pack(people(2), 100, 1)), ["100", "101"]);
  assert.deepEqual(texts(pack(people(9), 50, 2)), ["100", "101", "102", "+6"]);
  assert.deepEqual(texts(pack(people(9), 14, 1)), ["9"], "all of them, and none besides");
});

test("first the chosen, then whom the search finds, then the freshest", () => {
  const crowd = people(6, (n) => ({ fresh: ["stale", "recent", "now"][n % 3] }));
  assert.deepEqual(texts(pack(crowd, 50, 2)), ["102", "105", "101", "+3"]);
  crowd[0].picked = true;
  for (const one of crowd) one.dimmed = one.id !== "103";
  assert.deepEqual(texts(pack(crowd, 50, 2)), ["100", "103", "102", "+3"]);
});

test("the chosen is shown where there is room for one marker alone", () => {
  const crowd = people(5, (n) => ({ picked: n === 4 }));
  const [[marker]] = pack(crowd, 14, 1);
  assert.equal(marker.person.id, "104");
  assert.match(marker.text, /\+4$/);
  assert.match(marker.title, /and 4 more$/);
});

test("one alone is never a count", () => {
  const [[marker]] = pack([figure("ambassador", "r")], 14, 1);
  assert.equal(marker.person.id, "ambassador");
  assert.ok(marker.width <= 14);
});

test("no row is wider than its room, and every one has its middle at 0", () => {
  for (const width of [20, 33, 47, 90])
    for (const row of pack(people(20), width, 3)) {
      assert.ok(rowWidth(row) <= width);
      const [first, last] = [row[0], row[row.length - 1]];
      assert.ok(Math.abs(first.px - first.width / 2 + last.px + last.width / 2) < 1e-9);
    }
});

test("a stack is rather high than wide", () => {
  assert.equal(pack(people(3), 200, 3).length, 1);
  assert.equal(pack(people(3), 200, 3, { stacked: true }).length, 3);
});

test("a row stays in its room, else stands at its spot", () => {
  const [row] = pack(people(1), 100, 1);
  const room = { left: 0, right: 100 };
  assert.equal(rowMiddle(row, 50, room), 50);
  assert.equal(rowMiddle(row, 0, room), rowWidth(row) / 2);
  assert.equal(rowMiddle(row, 99, room), 100 - rowWidth(row) / 2);
});

const ghost = (id) => figure(id, "r", { order: Number(id), fresh: "stale", gone: true });

test("ghosts take the room that is left, and are not counted", () => {
  const crowd = [ghost("7"), ...people(2)];
  assert.deepEqual(texts(pack(crowd, 200, 1)), ["100", "101", "7"]);
  assert.ok(pack(crowd, 200, 1)[0][2].gone);
  assert.deepEqual(texts(pack([...crowd, ghost("8"), ghost("9")], 58, 1)), ["100", "101", "7"]);
  assert.deepEqual(texts(pack([ghost("7"), ...people(9)], 50, 2)), ["100", "101", "102", "+6"]);
});

test("where nobody is, a ghost is shown however narrow the room is, and no count", () => {
  assert.deepEqual(texts(pack([ghost("7"), ghost("8"), ghost("9")], 14, 1)), ["7"]);
});

test("who is chosen is first, lost or not", () => {
  const chosen = { ...ghost("7"), picked: true };
  assert.equal(texts(pack([chosen, ...people(9)], 50, 2))[0], "7");
});
