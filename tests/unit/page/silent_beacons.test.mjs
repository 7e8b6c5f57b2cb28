import assert from "node:assert/strict";
import { test } from "node:test";

import {
  SILENT_SECONDS,
  silentLocations,
} from "../../../services/monitoring/monitoring/static/rules/directory/silent_beacons.js";

const NOW = 1_000_000;
// Spots in a row, 10 m apart, with the seconds since each was heard (null: never).
const row = (...ages) =>
  ages.map((age, n) => ({
    level: "1",
    location: `Bay ${n}`,
    x: n * 10,
    y: 0,
    macs: [`M${n}`],
    last_visited: age === null ? null : NOW - age,
  }));
const found = (locations) => silentLocations(locations, NOW).map((one) => one.location);

test("a beacon is silent when both its neighbours were heard an hour longer", () => {
  assert.deepEqual(found(row(10, SILENT_SECONDS + 20, 10)), ["Bay 1"]);
  assert.deepEqual(found(row(10, SILENT_SECONDS - 20, 10)), []);
  assert.deepEqual(found(row(10, null, 10)), ["Bay 1"]);
});

test("a beacon that is new in the directory was not silent for an hour", () => {
  const [west, middle, east] = row(10, null, 10);
  const registered = (ago) => found([west, { ...middle, registered_at: NOW - ago }, east]);
  assert.deepEqual(registered(25), []);
  assert.deepEqual(registered(SILENT_SECONDS + 20), ["Bay 1"]);
});

test("it tells whom staff passed", () => {
  const [silent] = silentLocations(row(10, null, 10), NOW);
  assert.deepEqual(silent.passed, ["Bay 0", "Bay 2"]);
});

test("at the end of a corridor nobody has to pass", () => {
  assert.deepEqual(found(row(null, 10, 10)), []);
});

test("with one neighbour silent as well, nobody passed", () => {
  assert.deepEqual(found(row(10, null, null)), []);
});

test("only the nearest count: far apart, staff may have taken another way", () => {
  assert.deepEqual(found(row(10, null, null, null, 10)), []);
});

test("a building that was empty for a day has no silent beacons", () => {
  assert.deepEqual(found(row(90_000, null, 90_000)), []);
});

test("spots on other levels and without a position do not count", () => {
  const [west, middle, east] = row(10, null, 10);
  assert.deepEqual(found([west, middle, { ...east, level: "2" }]), []);
  assert.deepEqual(found([west, middle, { ...east, x: null, y: null }]), []);
  assert.deepEqual(found([west, { ...middle, x: null, y: null }, east]), []);
});
