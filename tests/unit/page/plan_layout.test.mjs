import assert from "node:assert/strict";
import { test } from "node:test";

import {
  layOutPlan,
  placePeople,
  trailPoints,
} from "../../../services/monitoring/monitoring/static/drawings/plan_layout.js";
import { SCALE, figure, overlap } from "./helpers.mjs";

const FRAME = { width: 600, height: 400 };
const WEST = { key: "west", location: "West", x: 0, y: 0 };
const EAST = { key: "east", location: "East", x: 20, y: 10 };
const LOST = { key: "lost", location: "Attic", x: null, y: null };

const zoneOf = (layout, key) => layout.zones.find((zone) => zone.spot.key === key);

test("spots stand on the floor as they do in the building", () => {
  const layout = layOutPlan([WEST, EAST], FRAME, SCALE);
  const [west, east] = layout.zones;
  assert.ok(west.center.x < east.center.x);
  assert.ok(west.center.y < east.center.y);
  assert.ok(layout.height <= FRAME.height);
  assert.ok(layout.outline.width <= FRAME.width);
  assert.equal(layout.aside, null);
});

test("distances are stretched to use the room, but not without end", () => {
  for (const frame of [FRAME, { width: 3000, height: 200 }, { width: 200, height: 3000 }]) {
    const [west, east] = layOutPlan([WEST, EAST], frame, SCALE).zones;
    const across = (east.center.x - west.center.x) / 20;
    const down = (east.center.y - west.center.y) / 10;
    const most = frame.width < 560 ? 2.6 : 1.6; // a phone has room below
    assert.ok(Math.max(across / down, down / across) <= most + 1e-9, `${frame.width}`);
  }
});

test("a frame without a height has a plan all the same", () => {
  const layout = layOutPlan([WEST, EAST], { width: 600, height: Infinity }, SCALE);
  assert.ok(Number.isFinite(layout.height));
});

test("a position far outside moves nothing else, and gets a box below the floor", () => {
  const at = (x) => ({ key: `${x}`, location: `${x}`, x, y: x % 2 });
  const rooms = [0, 9, 18, 27, 36].map(at);
  const good = layOutPlan(rooms, FRAME, SCALE);
  const found = layOutPlan([...rooms, at(2800)], FRAME, SCALE);
  const xs = ({ zones }) => zones.slice(0, 5).map(({ center }) => center.x);
  assert.deepEqual(xs(found), xs(good));
  assert.match(found.aside.text, /far outside/);
});

test("what has no position gets a box below the floor", () => {
  const layout = layOutPlan([LOST, WEST, EAST], FRAME, SCALE);
  assert.equal(layout.aside.text, "Not on the plan: no position in the directory");
  assert.ok(zoneOf(layout, "lost").box.top > layout.outline.height);
  assert.ok(zoneOf(layout, "lost").box.bottom <= layout.height);
});

test("boxes stand in rows as wide as the frame", () => {
  const spots = Array.from({ length: 9 }, (_, n) => ({ key: `${n}`, location: `Room ${n}` }));
  const layout = layOutPlan(spots, { width: 250, height: 400 }, SCALE);
  assert.equal(layout.outline, null);
  assert.equal(layout.aside.text, "No position in the directory");
  assert.equal(new Set(layout.zones.map((zone) => zone.box.left)).size, 2);
  assert.equal(new Set(layout.zones.map((zone) => zone.box.top)).size, 5);
});

test("a plan without spots is an empty one", () => {
  const layout = layOutPlan([], FRAME, SCALE);
  assert.deepEqual([layout.zones, layout.outline, layout.aside], [[], null, null]);
  assert.ok(layout.height > 0);
});

test("a name that has no room is left out, and a long one is cut", () => {
  const many = Array.from({ length: 200 }, (_, n) => ({
    key: `${n}`,
    location: `A place with a long name ${n}`,
    x: n % 20,
    y: Math.floor(n / 20),
  }));
  const narrow = layOutPlan(many, { width: 200, height: 150 }, SCALE);
  assert.ok(narrow.zones.every((zone) => zone.name === null));
  const layout = layOutPlan(
    [{ ...LOST, location: "A place with a name that is far too long" }],
    FRAME,
    SCALE,
  );
  assert.match(layout.zones[0].name.text, /^A place .*….*long$/);
});

test("a note stands below the name where there is room", () => {
  const [zone] = layOutPlan([{ ...WEST, note: "12 min" }], FRAME, SCALE).zones;
  assert.equal(zone.note.text, "12 min");
  assert.ok(zone.note.y > zone.name.y);
});

test("people stand at their spot, side by side", () => {
  const { zones } = layOutPlan([WEST, EAST], FRAME, SCALE);
  const crowd = ["1", "2", "3"].map((id) => figure(id, "west"));
  const markers = placePeople([...crowd, figure("4", "east")], zones, SCALE);
  assert.deepEqual(markers.map((marker) => marker.key).sort(), ["1", "2", "3", "4"]);
  assert.equal(markers[3].px, zones[1].center.x);
  const middle = markers.slice(0, 3).reduce((sum, marker) => sum + marker.px, 0) / 3;
  assert.ok(Math.abs(middle - zones[0].center.x) < 1e-9);
  for (const one of markers)
    for (const other of markers) assert.ok(one === other || !overlap(one, other));
});

test("a row that is not full stands in the middle", () => {
  const { zones } = layOutPlan([WEST], FRAME, SCALE);
  const crowd = Array.from({ length: 50 }, (_, n) => figure(`${n}`, "west"));
  const markers = placePeople(crowd, zones, SCALE);
  const last = markers.filter((marker) => marker.py === markers.at(-1).py);
  assert.ok(last.length < 15);
  const middle = last.reduce((sum, marker) => sum + marker.px, 0) / last.length;
  assert.ok(Math.abs(middle - zones[0].center.x) < 1e-9);
});

test("whoever has no room is counted, and nobody is dropped", () => {
  const { zones } = layOutPlan([LOST], { width: 100, height: 100 }, SCALE);
  for (const count of [1, 2, 3, 5, 40]) {
    const crowd = Array.from({ length: count }, (_, n) => figure(`${n}`, "lost"));
    const markers = placePeople(crowd, zones, SCALE);
    const counted = markers.reduce((sum, marker) => sum + (marker.more?.length ?? 1), 0);
    assert.equal(counted, count);
    assert.ok(markers.filter((marker) => marker.more).length <= 1);
    for (const marker of markers)
      assert.ok(marker.py + SCALE.height / 2 <= zones[0].box.bottom, "all stand in their zone");
  }
});

test("a crowd stays within the corners of its zone", () => {
  const spots = [WEST, EAST, { ...EAST, key: "south", location: "South", x: 30, y: 40 }];
  const { zones } = layOutPlan(spots, FRAME, SCALE);
  const crowd = spots.flatMap(({ key }) =>
    Array.from({ length: 200 }, (_, n) => figure(`${key}${n}`, key)),
  );
  for (const marker of placePeople(crowd, zones, SCALE)) {
    const { points } = zones.find(({ spot }) => spot.key === (marker.person ?? marker.more[0]).spotKey);
    for (const x of [marker.px - marker.width / 2, marker.px + marker.width / 2])
      for (const y of [marker.py - SCALE.height / 2, marker.py + SCALE.height / 2]) {
        const sides = points.map((from, index) => {
          const to = points[(index + 1) % points.length];
          return (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
        });
        assert.ok(sides.every((one) => one >= -1e-6) || sides.every((one) => one <= 1e-6));
      }
  }
});

test("somebody at a spot that is not drawn is not drawn either", () => {
  const { zones } = layOutPlan([WEST], FRAME, SCALE);
  assert.deepEqual(placePeople([figure("1", "nowhere")], zones, SCALE), []);
});

test("a trail leads from spot to spot", () => {
  const { zones } = layOutPlan([WEST, EAST], FRAME, SCALE);
  const [west, east] = zones.map((zone) => zone.center);
  assert.deepEqual(trailPoints(["west", "gone", "east", "west"], zones), [west, east, west]);
});
