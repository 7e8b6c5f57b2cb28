import assert from "node:assert/strict";
import { test } from "node:test";

import {
  layOutCrossSection,
  rowsOf,
  scaleForCrowd,
  stackPeople,
} from "../../../services/monitoring/monitoring/static/drawings/cross_section_layout.js";
import { sizes } from "../../../services/monitoring/monitoring/static/drawings/marker_layout.js";
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

test("a position far outside moves nothing else, and stands off the plan", () => {
  const rooms = ["a", "b", "c", "d", "e", "f"].map((key, index) => spot(key, index * 9));
  const [good] = layOutCrossSection([{ level: "1", spots: rooms }], FRAME, SCALE).strips;
  for (const x of [2800, -5000]) {
    const spots = [...rooms, spot("typo", x)];
    const [strip] = layOutCrossSection([{ level: "1", spots }], FRAME, SCALE).strips;
    assert.equal(strip.ticks.length, good.ticks.length);
    assert.ok(strip.ticks[5] - strip.ticks[0] > FRAME.width / 2);
    assert.ok(strip.roomOf.get("typo").left >= strip.ticks[5]);
  }
  const annex = rooms.map(({ key, x }) => spot(`annex ${key}`, x + 900));
  const [both] = layOutCrossSection([{ level: "1", spots: [...rooms, ...annex] }], FRAME, SCALE).strips;
  assert.equal(both.ticks.length, 12);
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
  const [a, b, c] = strip("1").ticks;
  assert.ok(a < b && b < c);
  assert.deepEqual(strip("2").ticks, [b]);
});

test("spots without a position are spread where no other is, else have a room behind the last", () => {
  assert.deepEqual(strip("unknown").ticks, []);
  assert.deepEqual(
    strip("unknown").names.map((name) => name.text),
    ["e", "f"],
  );
  const mixed = [{ level: "1", spots: [spot("a", 0), spot("b", 9), spot("lost", null)] }];
  const [one] = layOutCrossSection(mixed, FRAME, SCALE).strips;
  assert.ok(one.roomOf.get("lost").left >= one.roomOf.get("b").right, "they are not in Lobby B");
  assert.deepEqual(
    one.names.map((name) => name.text),
    ["a", "b", "off plan"],
  );
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

test("each spot has its own room; where that is too narrow, neighbours share one", () => {
  const [a, b, c] = strip("1").rooms;
  assert.deepEqual([a.left, c.right], [layout.left, layout.right]);
  assert.equal(a.right, b.left);
  assert.equal(b.right, c.left);
  const dense = Array.from({ length: 500 }, (_, n) => spot(`s${n}`, n % 25));
  const [one] = layOutCrossSection([{ level: "1", spots: dense }], FRAME, SCALE).strips;
  assert.ok(one.rooms.length > 10 && one.rooms.length <= 25, String(one.rooms.length));
  for (const room of one.rooms) assert.ok(room.right - room.left >= 2 * SCALE.unit);
  assert.equal(one.roomOf.get("s3"), one.roomOf.get("s28"), "one above the other");
});

test("people stand above their spot, and where two would overlap, one on the other", () => {
  const crowd = [0, 1, 2].map((order) => figure(`${order}`, "b", { order }));
  const { markers } = stackPeople(crowd, strip("1"), layout, SCALE);
  for (const { px } of markers) assert.ok(Math.abs(px - strip("1").ticks[1]) < 1e-9);
  assert.ok(markers[0].py > markers[1].py && markers[1].py > markers[2].py);
  assert.ok(markers.every((marker) => marker.py > strip("1").top));
});

const people = (count, key = "b") =>
  Array.from({ length: count }, (_, order) => figure(`${order}`, key, { order }));

test("the number of a crowd costs its people no row, and stands on nothing else", () => {
  for (const height of [120, 126, 160, 200, 600]) {
    const layout = layOutCrossSection(LEVELS, { ...FRAME, height }, SCALE);
    const one = layout.strips[1];
    const { markers, crowds } = stackPeople(people(150), one, layout, SCALE);
    assert.equal(new Set(markers.map(({ py }) => py)).size, rowsOf(layout, SCALE), `${height} px`);
    const [{ count, x, y }] = crowds;
    assert.equal(count, 150);
    const width = SCALE.textWidth("150", SCALE.small, 600);
    const digits = { px: x, py: y - SCALE.small * 0.36, width, height: SCALE.small * 0.72 };
    for (const { px, py, width: wide } of markers) {
      const apart = Math.abs(px - x) >= (wide + width) / 2;
      assert.ok(apart || Math.abs(py - digits.py) >= (SCALE.height + digits.height) / 2, `${height} px`);
    }
    for (const name of one.names) {
      const apart = (SCALE.textWidth(name.text, SCALE.small) + width) / 2;
      assert.ok(y < one.ground || Math.abs(name.x - x) >= apart);
    }
  }
});

test("a marker that counts a whole crowd says its number alone", () => {
  const spots = Array.from({ length: 20 }, (_, n) => spot(`${n}`, n));
  const narrow = { width: 700, height: 40 };
  const layout = layOutCrossSection([{ level: "1", spots }], narrow, SCALE);
  const { markers, crowds } = stackPeople(people(150, "7"), layout.strips[0], layout, SCALE);
  assert.deepEqual(markers.map((one) => one.text), ["150"]);
  assert.deepEqual(crowds.map((one) => one.count), [null]);
});

test("whoever has no room is counted where they are, and nobody leaves their room", () => {
  for (const count of [5, 30, 200]) {
    const crowd = ["a", "b", "c"].flatMap((key) =>
      Array.from({ length: count }, (_, order) => figure(`${key}${order}`, key, { order })),
    );
    const { markers } = stackPeople(crowd, strip("1"), layout, SCALE);
    for (const key of ["a", "b", "c"]) {
      const { left, right } = strip("1").roomOf.get(key);
      const own = markers.filter((one) => (one.person ?? one.more[0]).spotKey === key);
      assert.equal(
        own.reduce((sum, marker) => sum + (marker.more?.length ?? 1), 0),
        count,
      );
      for (const { px, width } of own) assert.ok(px - width / 2 >= left && px + width / 2 <= right);
      for (const one of own) for (const other of own) assert.ok(one === other || !overlap(one, other));
    }
  }
});

test("type is as large as the crowd allows, whoever stands where", () => {
  const scaleFor = (room) => ({ ...sizes(16, room), textWidth: SCALE.textWidth });
  const levels = ["1", "2", "3", "4"].map((level) => ({
    level,
    spots: Array.from({ length: 8 }, (_, n) => spot(`${level}-${n}`, n * 8)),
  }));
  const frame = { width: 1300, height: 560 };
  const unit = (people) => scaleForCrowd(levels, people, frame, scaleFor).unit;
  assert.ok(unit(8) > 20);
  assert.equal(unit(500), 16);
  assert.ok(unit(8) >= unit(100) && unit(100) >= unit(500));
});

const scaled = (room) => ({ ...SCALE, ...sizes(10, room) });
const WALL = { width: 800, height: 300, isWall: true };
const tower = (levels) =>
  Array.from({ length: levels }, (_, n) => ({ level: `${n}`, spots: [spot(`${n}`, 0)] }));

test("on a wall screen the smallest text is as large as the document's, however many people", () => {
  for (const people of [1, 14, 300, 5000])
    assert.ok(scaleForCrowd(tower(5), people, WALL, scaled).small >= 10, String(people));
  assert.ok(scaleForCrowd(tower(5), 300, { ...WALL, isWall: false }, scaled).small < 10);
});

test("on a wall screen all levels fit before text is large", () => {
  const scale = scaleForCrowd(tower(9), 14, WALL, scaled);
  assert.ok(scale.small < 10);
  assert.ok(layOutCrossSection(tower(9), WALL, scale).height <= WALL.height);
});

test("on a wall screen a name that has no room is told by its number", () => {
  const names = (spots, isWall = true) =>
    layOutCrossSection([{ level: "4", spots }], { ...WALL, width: 300, isWall }, SCALE)
      .strips[0].names.map((name) => name.text);
  const rooms = [..."123456"].map((n) => spot(`Room 4-0${n}`, Number(n)));
  assert.deepEqual(names([spot("Lobby", 0), ...rooms]).slice(0, 3), ["Lobby", "4-01", "4-02"]);
  assert.ok(names(rooms, false).every((name) => name.startsWith("Room")));
  assert.deepEqual(names(rooms.slice(0, 2)), ["Room 4-01", "Room 4-02"]);
});
