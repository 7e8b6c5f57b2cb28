import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batteriesOf,
  batteryText,
  changeText,
} from "../../../services/monitoring/monitoring/static/rules/directory/batteries.js";

const NOW = 1_767_225_600;
const GOOD = { value: 2977, unit: "mV", at: NOW, left: 0.95, per_day: null, empty_at: null, low: false };

test("a battery is told with its unit, and a low one says so", () => {
  assert.match(batteryText(GOOD), /^2[,.  ]?977 mV$/);
  assert.equal(batteryText({ ...GOOD, value: 9, unit: "%", low: true }), "9 %, low");
});

test("what is not known is not told as a date", () => {
  assert.equal(changeText(GOOD, NOW), "too few days for a trend");
  assert.equal(changeText({ ...GOOD, per_day: 0 }, NOW), "no end in sight");
  assert.equal(changeText({ ...GOOD, per_day: -0.001 }, NOW), "no end in sight");
});

test("a battery has a day on which it is empty, until it is", () => {
  const falling = { ...GOOD, per_day: -1, empty_at: NOW + 90 * 86_400 };
  assert.match(changeText(falling, NOW), /^empty about .*2026/);
  assert.equal(changeText(falling, NOW + 90 * 86_400), "change it now");
  assert.equal(changeText({ ...GOOD, empty_at: NOW - 1 }, NOW), "change it now");
});

test("only beacons of the directory that tell of a battery are listed, where they hang now", () => {
  const place = { level: "4", location: "Roof", x: null, y: null };
  const told = [
    { mac: "B", battery: GOOD },
    { mac: "GONE", battery: GOOD },
    { mac: "A", battery: GOOD },
    { mac: "NONE", battery: null },
  ];
  const directory = ["A", "B", "C", "NONE"].map((mac) => ({ mac, ...place }));
  const listed = batteriesOf(told, directory);
  assert.deepEqual(listed.map(({ mac }) => mac), ["B", "A"]);
  assert.deepEqual(listed[0], { mac: "B", ...place, battery: GOOD });
});
