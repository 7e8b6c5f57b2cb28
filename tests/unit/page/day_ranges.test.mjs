import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import {
  hourFrom,
  hoursOfDay,
  yesterday,
} from "../../../services/monitoring/monitoring/static/rules/histories/day_ranges.js";

const seconds = (text) => Date.parse(text) / 1000;
const zone = process.env.TZ;
afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

test("yesterday lasts from midnight to midnight where the viewer is", () => {
  process.env.TZ = "Asia/Singapore";
  assert.deepEqual(yesterday(seconds("2026-11-24T20:00:00Z")), {
    from: seconds("2026-11-23T16:00:00Z"),
    to: seconds("2026-11-24T16:00:00Z"),
  });
});

test("a day on which the clocks change has 25 or 23 hours, and each of them one time", () => {
  process.env.TZ = "Europe/Berlin";
  const autumn = hoursOfDay(seconds("2026-10-25T12:00:00Z"));
  assert.equal(autumn.length, 25);
  assert.equal(autumn[0], seconds("2026-10-24T22:00:00Z"));
  assert.deepEqual(yesterday(seconds("2026-10-26T12:00:00Z")), {
    from: autumn[0],
    to: autumn[0] + 25 * 3600,
  });
  const spring = hoursOfDay(seconds("2026-03-29T12:00:00Z"));
  assert.equal(spring.length, 23);
  const names = spring.map((start) => new Date(start * 1000).getHours());
  assert.deepEqual(names.slice(0, 4), [0, 1, 3, 4]);
});

test("an hour is an hour", () => {
  assert.deepEqual(hourFrom(7200), { from: 7200, to: 10800 });
});
