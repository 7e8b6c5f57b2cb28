import assert from "node:assert/strict";
import { test } from "node:test";

import { firstAfter } from "../../../services/monitoring/monitoring/static/rules/histories/first_after.js";

const PAGE = 10;

/** Answers as the API does, from times; counts the reads. */
function history(...times) {
  const newestFirst = times.sort((one, other) => other - one);
  const read = async ({ from, to = Infinity, limit = PAGE }) => {
    read.count += 1;
    const found = newestFirst.filter((time) => time >= from && time <= to);
    const data = found.slice(0, limit).map((timestamp) => ({ timestamp }));
    return { data, next: found.length > limit ? "more" : null };
  };
  read.count = 0;
  return read;
}

const DAY = 86_400;
const often = (from, to) => Array.from({ length: (to - from) / 4 }, (_, n) => from + n * 4);

for (const [name, times, expected] of [
  ["nothing", [100], undefined],
  ["one", [100, 101], 101],
  ["several of one page", [100, 150, 160, 170], 150],
  ["somebody who is heard all day", often(0, DAY / 4), 104],
  ["a crowd after a week of silence", [100, ...often(7 * DAY, 7 * DAY + 4000)], 7 * DAY],
  ["more than a page in one second", [...Array(25).fill(200), ...often(300, 900)], 200],
])
  test(`the first after a time: ${name}`, async () => {
    const read = history(...times);
    assert.equal((await firstAfter(read, 100))?.timestamp, expected);
    assert.ok(read.count <= 25, `${read.count} reads`);
  });
