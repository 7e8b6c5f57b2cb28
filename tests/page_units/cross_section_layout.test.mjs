import assert from "node:assert/strict";
import { test } from "node:test";

import {
  layOutCrossSection,
  stackPeople,
} from "../../services/monitoring/monitoring/static/drawings/cross_section_layout.js";
import { SCALE, figure, overlap } from "./helpers.mjs";

const FRAME = { width: 800, height: 600 };
const spot = (key, x) => ({ key, location: key, x, y: x === null ? null : 0 });
const LEVELS = [
  { level: "1", spots: [spot("a", 0), spot("b", 50), spot("c", 100)] },
  { level: "2", spots: [spot("d", 50)] },
  { level: "unknown", spots: [spot("e", null), spot("f", null)] },
];

const layout = layOutCrossSection(LEVELS, FRAME, SCALE);
const strip = (level) => layout.strips.find((one) => one.level === level);

test("the highest level is on top, and what is unknown below the ground", () => {
  assert.deepEqual(
    layout.strips.map((one) => one.title),
    ["Level 2", "Level 1", "Unknown"],
  );
  assert.deepEqual(
    layout.strips.map((one) => one.top),
    [0, 200, 400],
  );
  assert.equal(layout.height, FRAME.height);
});

test("titles are short where the frame is narrow", () => {
  const narrow = layOutCrossSection(LEVELS, { width: 390, height: 600 }, SCALE);
  assert.deepEqual(
    narrow.strips.map((one) => one.title),
    ["L2", "L1", "?"],
  );
});

test("strips do not become too low: the drawing is higher than its frame then", () => {
  const many = Array.from({ length: 50 }, (_, n) => ({ level: `${n}`, spots: [] }));
  const high = layOutCrossSection(many, FRAME, SCALE);
  assert.equal(high.stripHeight, 36);
  assert.equal(high.height, 1800);
});

test("spots of all levels share one scale", () => {
  const { spotX } = strip("1");
  assert.ok(spotX.get("a") < spotX.get("b") && spotX.get("b") < spotX.get("c"));
  assert.equal(strip("2").spotX.get("d"), spotX.get("b"));
  assert.deepEqual(strip("1").ticks, [...spotX.values()]);
});

test("spots without a position are spread where no other is, else stand behind the last", () => {
  assert.deepEqual(strip("unknown").ticks, []);
  assert.deepEqual(
    strip("unknown").names.map((name) => name.text),
    ["e", "f"],
  );
  const mixed = [{ level: "1", spots: [spot("a", 0), spot("b", 9), spot("lost", null)] }];
  const [one] = layOutCrossSection(mixed, FRAME, SCALE).strips;
  assert.equal(one.spotX.get("lost"), one.spotX.get("b"));
  assert.equal(one.names.length, 2);
});

test("names that would overlap are left out", () => {
  const spots = Array.from({ length: 100 }, (_, n) => spot(`A place ${n}`, n));
  const [one] = layOutCrossSection([{ level: "1", spots }], FRAME, SCALE).strips;
  assert.equal(one.ticks.length, 100);
  assert.ok(one.names.length > 5 && one.names.length < 30);
  one.names.slice(1).forEach((name, index) => {
    const half = SCALE.textWidth(name.text, SCALE.small);
    assert.ok(name.x - one.names[index].x >= half);
  });
});

test("people stand above their spot, and where two would overlap, one on the other", () => {
  const crowd = [0, 1, 2].map((order) => figure(`${order}`, "b", { order }));
  const markers = stackPeople(crowd, strip("1"), layout, SCALE);
  assert.deepEqual(
    markers.map((marker) => marker.px),
    Array(3).fill(strip("1").spotX.get("b")),
  );
  assert.ok(markers[0].py > markers[1].py && markers[1].py > markers[2].py);
  assert.ok(markers.every((marker) => marker.py > strip("1").top));
});

test("whoever has no room is counted, and nobody is dropped or overlaps", () => {
  for (const count of [5, 30, 200]) {
    const crowd = Array.from({ length: count }, (_, order) => figure(`p${order}`, "b", { order }));
    const markers = stackPeople(crowd, strip("1"), layout, SCALE);
    const counted = markers.reduce((sum, marker) => sum + (marker.more?.length ?? 1), 0);
    assert.equal(counted, count);
    const people = markers.filter((marker) => !marker.more);
    for (const { px } of people)
      assert.ok(Math.abs(px - strip("1").spotX.get("b")) <= 4 * SCALE.unit, "near their spot");
    for (const one of people)
      for (const other of people) assert.ok(one === other || !overlap(one, other));
  }
});

test("markers stay within the building", () => {
  const crowd = ["a", "c", "nowhere"].map((key) => figure("a-long-name", key));
  for (const marker of stackPeople(crowd, strip("1"), layout, SCALE)) {
    assert.ok(marker.px - marker.width / 2 >= layout.left);
    assert.ok(marker.px + marker.width / 2 <= layout.right + 1e-9);
  }
});
