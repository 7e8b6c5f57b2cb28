import assert from "node:assert/strict";
import { test } from "node:test";

import {
  overflowMarker,
  personMarker,
  shorten,
  sizes,
} from "../../../services/monitoring/monitoring/static/drawings/marker_layout.js";
import { SCALE, figure } from "./helpers.mjs";

test("sizes grow with the room, within limits", () => {
  assert.equal(sizes(16, 0.2).unit, 16);
  assert.equal(sizes(16, 1.5).unit, 24);
  assert.equal(sizes(16, 9).unit, 16 * 1.6);
});

test("a long id is cut in its marker and whole in its title", () => {
  const marker = personMarker(figure("a-long-identity", "spot"), SCALE);
  assert.equal(marker.text, "a-lo…ity");
  assert.equal(marker.title, "Staff a-long-identity");
  assert.equal(shorten("12345678", 8), "12345678");
});

test("a name is cut another way than an id, and whole where a marker counts several", () => {
  const named = figure("7", "spot", { name: "Mohammed Abdul Rahman" });
  assert.equal(personMarker(named, SCALE).text, "Mohammed");
  assert.equal(overflowMarker("spot", [named, figure("8", "spot")], SCALE).title, "2 more: Mohammed Abdul Rahman, 8");
});

test("what differs at its end is told apart", () => {
  const beacons = ["AA:BB:CC:DD:EE:01", "AA:BB:CC:DD:EE:02"].map((mac) => `unknown beacon ${mac}`);
  assert.deepEqual(beacons.map((name) => shorten(name, 12)), ["unknow…EE:01", "unknow…EE:02"]);
  assert.deepEqual([1, 2, 3].map((length) => shorten("Lobby", length)), ["…", "L…", "L…y"]);
});

test("a marker that counts several is as fresh as the freshest of them", () => {
  const people = ["stale", "recent"].map((fresh) => figure(fresh, "spot", { fresh }));
  const marker = overflowMarker("spot", people, SCALE);
  assert.equal(marker.fresh, "recent");
  assert.equal(marker.text, "+2");
  assert.equal(marker.title, "2 more: stale, recent");
});

test("a compact marker is as wide as its room, but never says nothing", () => {
  const marker = personMarker(figure("ambassador", "spot"), SCALE, 30);
  assert.ok(marker.width <= 30 && marker.compact);
  assert.equal(personMarker(figure("ambassador", "spot"), SCALE, 5).text, "am…r");
  assert.equal(personMarker(figure("1234", "spot"), SCALE, 5).text, "1234");
});
