import assert from "node:assert/strict";
import { test } from "node:test";

import {
  overflowMarker,
  personMarker,
  shorten,
  sizes,
} from "../../services/monitoring/monitoring/static/drawings/marker_layout.js";
import { SCALE, figure } from "./helpers.mjs";

const AT = { x: 3, y: 4 };

test("sizes grow with the room, within limits", () => {
  assert.equal(sizes(16, 0.2).unit, 16);
  assert.equal(sizes(16, 1.5).unit, 24);
  assert.equal(sizes(16, 9).unit, 16 * 1.6);
});

test("a long id is cut in its marker and whole in its title", () => {
  const marker = personMarker(figure("a-long-identity", "spot"), SCALE, AT);
  assert.equal(marker.text, "a-long-…");
  assert.equal(marker.title, "Staff a-long-identity");
  assert.deepEqual([marker.px, marker.py], [3, 4]);
  assert.equal(shorten("12345678", 8), "12345678");
});

test("a marker that counts several is as fresh as the freshest of them", () => {
  const people = ["stale", "recent"].map((fresh) => figure(fresh, "spot", { fresh }));
  const marker = overflowMarker("spot", people, SCALE, AT);
  assert.equal(marker.fresh, "recent");
  assert.equal(marker.text, "+2");
  assert.equal(marker.title, "2 more: stale, recent");
});
