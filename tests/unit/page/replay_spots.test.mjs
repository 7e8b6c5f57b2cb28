import assert from "node:assert/strict";
import { test } from "node:test";

import {
  levelSpots,
  spotKey,
} from "../../../services/monitoring/monitoring/static/rules/histories/replay_spots.js";

const BEACONS = [
  { mac: "AA", level: "1", location: "Lobby", x: 0, y: 0 },
  { mac: "BB", level: "2", location: "Roof", x: 0, y: 0 },
  { mac: "CC", level: "1", location: "Store", x: null, y: null },
];
const visit = (mac, location, level = "1") => ({ mac, location, level, from: 0, to: 1, count: 1 });
const keys = (visits) => levelSpots(visits[0], visits, BEACONS).map((spot) => spot.key);

test("the spots are those of the directory with a position, on the visit's level", () => {
  assert.deepEqual(keys([visit("AA", "Lobby")]), ["AA"]);
});

test("what was visited without being there is added, once", () => {
  const visits = [
    visit("CC", "Store"),
    visit("CC", "Store"),
    visit("ZZ", "unknown"),
    visit("BB", "Roof", "2"),
  ];
  assert.deepEqual(keys(visits), ["AA", "Store", "unknown beacon ZZ"]);
});

test("a visit by another id of a beacon is at its spot, and no spot of its own", () => {
  const beacons = [...BEACONS, { ...BEACONS[0], mac: "DD", aliases: ["EE"], location: "Hall" }];
  const visits = [visit("EE", "Old name"), visit("AA", "Lobby")];
  const spots = levelSpots(visits[0], visits, beacons);
  assert.deepEqual(
    spots.map((spot) => spot.key),
    ["AA", "DD"],
  );
  assert.equal(spotKey(visits[0], spots), "DD");
});

test("a visit's spot is that of its beacon, else of its name, else its own", () => {
  const visits = [visit("AA", "Lobby"), visit("ZZ", "Lobby"), visit("CC", "Store")];
  const spots = levelSpots(visits[0], visits, BEACONS);
  assert.deepEqual(
    visits.map((one) => spotKey(one, spots)),
    ["AA", "AA", "Store"],
  );
  assert.equal(spotKey(visit("ZZ", "unknown"), []), "unknown beacon ZZ");
});
