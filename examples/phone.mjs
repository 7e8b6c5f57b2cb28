#!/usr/bin/env node
// A phone that loses nothing: what is heard goes to a file first, and from there to Waymark.
//
//   phone.mjs URL STAFF_ID QUEUE [TOKEN]
//
// Each line of the input is a beacon and its strength: `C2A628384B08 -67`. At the end of the input it
// ends as soon as the queue is empty; killed at any time and started again, it goes on where it was.
// What Waymark rejects is kept in QUEUE.rejected. One process for each queue. Node 18 or newer,
// without any package.
import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { createInterface } from "node:readline";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const BATCH = 500; // Waymark takes 1000 and 384 KiB
const TIMEOUT_MS = 10_000;
const LONGEST_PAUSE_MS = 60_000;
const NO_CLOCK_BEFORE = 1577836800; // 2020: what says so has lost its clock
const REWRITE_AFTER = 1000; // removed detections that the file may still hold
const SAFE = new Set(["stored", "duplicate", "queued"]); // Waymark has it, in the database or on its own disk

/** Detections on disk, oldest first: a line for each, and one for each that was removed. */
class Queue {
  #path;
  #file;
  #heard = new Map();
  #removed = 0;

  constructor(path) {
    this.#path = path;
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    // The last line may be half written: nothing was promised of it.
    for (const line of text.slice(0, text.lastIndexOf("\n") + 1).split("\n").filter(Boolean)) {
      const { removed, ...detection } = JSON.parse(line);
      if (removed) this.#heard.delete(removed);
      else this.#heard.set(detection.event_id, detection);
    }
    this.#rewrite();
  }

  get size() {
    return this.#heard.size;
  }

  /** What this returned from survives a power cut. */
  add(detection) {
    this.#append([detection]);
    this.#heard.set(detection.event_id, detection);
  }

  oldest(count) {
    return [...this.#heard.values()].slice(0, count);
  }

  /** Lays aside what nobody wants. */
  reject(detection, errors) {
    append(openSync(`${this.#path}.rejected`, "a"), [{ ...detection, errors }], closeSync);
    this.remove([detection.event_id]);
  }

  remove(names) {
    if (!names.length) return;
    for (const name of names) this.#heard.delete(name);
    this.#removed += names.length;
    if (this.#removed > REWRITE_AFTER) this.#rewrite();
    else this.#append(names.map((removed) => ({ removed })));
  }

  #append(rows) {
    append(this.#file, rows);
  }

  /** A new file, whole before it takes the place of the old one. */
  #rewrite() {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = openSync(`${this.#path}.new`, "w");
    this.#append([...this.#heard.values()]);
    renameSync(`${this.#path}.new`, this.#path);
    const folder = openSync(dirname(this.#path), "r");
    fsyncSync(folder); // else a power cut may bring the old file back
    closeSync(folder);
    this.#removed = 0;
  }
}

/** Writes all of it, to the disk. */
function append(file, rows, then = () => {}) {
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  fsyncSync(file);
  then(file);
}

/** Sends batches; each answer says how long to wait before the next. */
class Waymark {
  #failures = 0;
  #most = BATCH;

  constructor(url, token) {
    this.address = `${url.replace(/\/$/, "")}/api/v1/detections`;
    this.headers = { "Content-Type": "application/json" };
    if (token) this.headers.Authorization = `Bearer ${token}`;
  }

  /** Sends the oldest detections; returns how many milliseconds to wait. */
  async send(queue) {
    const detections = queue.oldest(this.#most);
    if (!detections.length) return 200;
    const body = JSON.stringify({ detections, sent_at: Math.floor(Date.now() / 1000) });
    let response, text;
    try {
      // A POST: libraries send a GET again by themselves, and would double what has no event id.
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      response = await fetch(this.address, { method: "POST", headers: this.headers, body, signal });
      text = await response.text();
    } catch (error) {
      return this.#wait(`no answer: ${error.cause?.message ?? error.message}`); // or half of one
    }
    const answer = parsed(text);
    const results = (Array.isArray(answer.results) ? answer.results : []).filter(
      (result) => detections[result?.index], // a 503 may have stored some
    );
    queue.remove(results.filter(({ status }) => SAFE.has(status)).map(({ index }) => detections[index].event_id));
    for (const { status, index, errors } of results) {
      if (status !== "rejected") continue; // it would be rejected again: tell, and let it go
      console.error(`rejected: ${JSON.stringify(detections[index])}: ${JSON.stringify(errors)}`);
      queue.reject(detections[index], errors);
    }
    if ((answer.clock ?? "right") !== "right")
      console.error(`this clock is ${answer.clock} by ${answer.clock_skew_seconds} s: set it`);
    if (response.ok && results.length === detections.length) {
      this.#failures = 0;
      this.#most = BATCH;
      return 0;
    }
    if (response.status === 413) this.#most = Math.max(1, this.#most >> 1);
    // Also a 400 and a 401 lose nothing: somebody has to correct the address or the token. A 200
    // without results is the page of some wireless network.
    return this.#wait(`${response.status}: ${text.slice(0, 200)}`, response.headers.get("Retry-After"));
  }

  /** How long to wait: as told, else twice as long each time, never all at once. */
  #wait(why, retryAfter) {
    this.#failures += 1;
    let pause = 2 ** Math.min(this.#failures, 10) * 500;
    if (/^\d+$/.test(retryAfter ?? ""))
      pause = Math.max(Number(retryAfter) * 1000, this.#failures > 3 ? pause : 0);
    pause = Math.min(pause, LONGEST_PAUSE_MS);
    console.error(`${why}; again in about ${Math.round(pause / 1000)} s`);
    return pause * (0.75 + Math.random() / 2);
  }
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

const [url, staffId, path, token] = process.argv.slice(2);
const queue = new Queue(path);
const waymark = new Waymark(url, token);
let hasEnded = false;
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const [, mac, rssi] = /^\s*(\S.*) (\S+)\s*$/.exec(line) ?? [];
  if (!mac || !Number.isFinite(Number(rssi))) return console.error(`not heard: ${line}`);
  // A UUID, never a counter: after a reinstall a counter begins anew, and what it names is taken
  // for what it named before.
  const event_id = randomUUID();
  const now = Math.floor(Date.now() / 1000);
  const timestamp = now < NO_CLOCK_BEFORE ? undefined : now; // else the server's time counts
  queue.add({ staff_id: staffId, mac, rssi: Math.round(Number(rssi)), event_id, timestamp });
  console.log(event_id); // from here on it is safe
});
lines.on("close", () => {
  hasEnded = true;
});
while (!hasEnded || queue.size) await sleep(await waymark.send(queue));
