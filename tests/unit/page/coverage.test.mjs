import assert from "node:assert/strict";
import { test } from "node:test";

import {
  byLongestGap,
  fromWestToEast,
  sinceText,
  withStates,
} from "../../../services/monitoring/monitoring/static/rules/places/coverage_states.js";
import {
  nearestText,
  walkers,
} from "../../../services/monitoring/monitoring/static/rules/places/nearest_person.js";
import { Names } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

const NOW = 100_000;
const NAMES = new Names([]);
const place = (location, ago, more = {}) => ({
  level: "1",
  location,
  x: 0,
  y: 0,
  macs: [location],
  last_visited: ago === null ? null : NOW - ago,
  ...more,
});
const stateOf = (ago) => withStates([place("A", ago)], NOW, 30)[0].state;

test("who was heard by another id of a beacon is as near as by the first", () => {
  const places = [{ ...PLACES[0], macs: ["AA"], aliases: ["EE"], level: "1", x: 3, y: 4 }];
  const data = ["AA", "EE"].map((mac, id) => ({
    staff_id: id,
    timestamp: NOW,
    age_seconds: 0,
    mac,
    level: "1",
    location: "Lobby",
  }));
  const positions = walkers({ as_of: NOW, data }, NOW, places).map(({ x, y }) => [x, y]);
  assert.deepEqual(positions, [[3, 4], [3, 4]]);
});

test("a location is a gap after the time, and soon one after half of it", () => {
  assert.deepEqual([0, 899, 900, 1799, 1800, null].map(stateOf), [
    "ok",
    "ok",
    "soon",
    "soon",
    "gap",
    "gap",
  ]);
});

test("two locations of one name on a level are told apart by their beacons", () => {
  const lobbies = [place("Lobby", 1, { macs: ["AABBCC000108"] }), place("Lobby", 2, { macs: ["AABBCC000109"] })];
  const found = withStates([...lobbies, place("Lobby", 3, { level: "2" })], NOW, 30);
  assert.deepEqual(found.map((one) => one.label), ["Lobby (…01:08)", "Lobby (…01:09)", "Lobby"]);
  assert.equal(new Set(found.map((one) => one.key)).size, 3);
});

test("a visit is told by its age", () => {
  assert.deepEqual([30, 3660, Infinity].map(sinceText), [
    "now",
    "1 h 1 min",
    "never",
  ]);
});

test("what has no level is left out", () => {
  assert.deepEqual(withStates([place("A", 0, { level: null })], NOW, 30), []);
});

test("gaps: the longest first; tiles: from west to east, then without a position", () => {
  const all = withStates(
    [place("A", 5000, { x: null }), place("B", 5000, { x: 9 }), place("never", null, { x: 1 })],
    NOW,
    30,
  );
  const names = (order) => [...all].sort(order).map((one) => one.location);
  assert.deepEqual(names(byLongestGap), ["never", "A", "B"]);
  assert.deepEqual(names(fromWestToEast), ["never", "B", "A"]);
});

const member = (id, mac, level = "1", age = 5) => ({
  staff_id: id,
  mac,
  level,
  location: mac,
  timestamp: NOW - age,
  age_seconds: age,
});
const PLACES = [
  place("here", 0),
  place("near", 0, { x: 3, y: 4 }),
  place("far", 0, { x: 60 }),
  place("unplaced", 0, { x: null, y: null }),
];
const nearest = (gap, ...members) =>
  nearestText(gap, walkers({ as_of: NOW, data: members }, NOW, PLACES), NAMES);

test("the nearest is the one with the shortest way on the same level", () => {
  assert.equal(nearest(PLACES[0], member(1, "far"), member(2, "near")), "Staff 2, 5 m away, near");
});

test("somebody on the level is nearer than anybody on another, the next level nearer than the one after", () => {
  const upstairs = member(1, "near", "2");
  assert.equal(nearest(PLACES[0], upstairs, member(2, "far")), "Staff 2, 60 m away, far");
  assert.equal(nearest(PLACES[0], member(3, "near", "3"), upstairs), "Staff 1, on level 2, near");
});

test("without a position nobody can say how far it is", () => {
  assert.equal(nearest(PLACES[0], member(1, "unplaced")), "Staff 1, on this level, unplaced");
  assert.equal(nearest(PLACES[3], member(1, "unplaced")), "Staff 1, on this level, unplaced");
});

test("only who was heard lately, on a known level, is about", () => {
  const nobody = "nobody was heard in the last 5 minutes";
  assert.equal(nearest(PLACES[0], member(1, "near", "1", 301)), nobody);
  assert.equal(nearest(PLACES[0], member(1, "near", null)), nobody);
  assert.deepEqual(walkers(null, NOW, PLACES), []);
  assert.equal(nearestText(PLACES[0], [], NAMES, false), "cannot be told now", "people are missing");
});
