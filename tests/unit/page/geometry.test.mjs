import assert from "node:assert/strict";
import { test } from "node:test";

import {
  chord,
  bounds,
  floor,
  hasPosition,
  zones,
} from "../../../services/monitoring/monitoring/static/rules/places/geometry.js";

const BOX = { left: 0, right: 10, top: 0, bottom: 10 };

const area = (polygon) =>
  Math.abs(
    polygon.reduce((sum, point, index) => {
      const next = polygon[(index + 1) % polygon.length];
      return sum + point.x * next.y - next.x * point.y;
    }, 0) / 2,
  );

test("one spot has the whole floor", () => {
  assert.equal(area(zones([{ x: 3, y: 3 }], BOX)[0]), 100);
});

test("two spots share it at the line between them", () => {
  const [left, right] = zones(
    [
      { x: 1, y: 5 },
      { x: 5, y: 5 },
    ],
    BOX,
  );
  assert.deepEqual(bounds(left), { left: 0, right: 3, top: 0, bottom: 10 });
  assert.deepEqual(bounds(right), { left: 3, right: 10, top: 0, bottom: 10 });
});

test("zones fill the floor without overlapping", () => {
  const spots = Array.from({ length: 40 }, (_, n) => ({ x: (n * 7) % 10, y: ((n * 13) % 37) / 4 }));
  const sum = zones(spots, BOX).reduce((total, polygon) => total + area(polygon), 0);
  assert.ok(Math.abs(sum - 100) < 1e-6, `${sum}`);
});

test("each point of a zone is nearest to its own spot", () => {
  const spots = [
    { x: 2, y: 2 },
    { x: 8, y: 3 },
    { x: 5, y: 9 },
  ];
  const squared = (one, other) => (one.x - other.x) ** 2 + (one.y - other.y) ** 2;
  zones(spots, BOX).forEach((polygon, index) => {
    for (const corner of polygon) {
      const nearest = Math.min(...spots.map((spot) => squared(spot, corner)));
      assert.ok(squared(spots[index], corner) <= nearest + 1e-6);
    }
  });
});

test("two beacons at one place have the same zone", () => {
  const [one, other] = zones(
    [
      { x: 5, y: 5 },
      { x: 5, y: 5 },
    ],
    BOX,
  );
  assert.deepEqual(one, other);
});

test("the floor has some room around the spots", () => {
  assert.deepEqual(floor([{ x: 0, y: 0 }]), { left: -4, right: 4, top: -4, bottom: 4 });
  assert.equal(
    floor([
      { x: 0, y: 0 },
      { x: 100, y: 0 },
    ]).right,
    106,
  );
});

test("a position is two numbers", () => {
  assert.ok(hasPosition({ x: 0, y: -1.5 }));
  for (const spot of [{}, { x: null, y: null }, { x: 1, y: null }, { x: NaN, y: 1 }])
    assert.ok(!hasPosition(spot));
});

test("a chord is what a polygon has at every height of a band", () => {
  const triangle = [
    { x: 0, y: 0 },
    { x: 10, y: 0 },
    { x: 5, y: 10 },
  ];
  assert.deepEqual(chord(triangle, 0, 0), { left: 0, right: 10 });
  assert.deepEqual(chord(triangle, 2, 4), { left: 2, right: 8 });
  assert.equal(chord(triangle, 2, 12), null);
});
