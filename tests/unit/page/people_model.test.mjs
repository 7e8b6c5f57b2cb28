import assert from "node:assert/strict";
import { test } from "node:test";

import {
  byFloor,
  directorySpots,
  everyone,
  isOffDuty,
  levelsOf,
  spotsToDraw,
} from "../../../services/monitoring/monitoring/static/rules/people/people_model.js";
import { Names } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

const NOW = 10_000;
const NAMES = new Names([
  { staff_id: 80, name: "Jane Tan Wei Ling", team: "Front desk", on_duty: false },
  { staff_id: "zed", name: "Abe Lim" },
]);
const BEACONS = [
  { mac: "AA", level: "1", location: "Lobby", x: 0, y: 0 },
  { mac: "BB", level: "2", location: "Lobby", x: 5, y: 5 },
  { mac: "CC", level: "2", location: "Store", x: null, y: null },
];
const member = (id, mac, level, location, age = 5) => ({
  staff_id: id,
  timestamp: NOW - age,
  age_seconds: age,
  mac,
  level,
  location,
});
const directory = directorySpots(BEACONS);
const model = (members, { failure = "", takenAt = NOW, picked = "" } = {}) =>
  everyone(
    { data: { as_of: NOW, data: members }, failure, takenAt, now: () => NOW },
    directory,
    picked,
    NAMES,
  );

test("people are ordered by number, then by name", () => {
  const ids = model(["10", 9, "guard-2"].map((id) => member(id, "AA", "1", "Lobby")));
  assert.deepEqual(
    ids.map((one) => [one.id, one.order]),
    [
      ["9", 0],
      ["10", 1],
      ["guard-2", 2],
    ],
  );
});

test("who has a name is called by it, and comes first, by name", () => {
  const people = model(["3", 80, "zed"].map((id) => member(id, "AA", "1", "Lobby")));
  assert.deepEqual(
    people.map((person) => [person.called, person.name, isOffDuty(person)]),
    [
      ["Abe Lim", "Abe Lim", false],
      ["Jane Tan Wei Ling", "Jane Tan Wei Ling", true],
      ["Staff 3", undefined, false],
    ],
  );
  assert.equal(people[1].title, "Jane Tan Wei Ling: level 1, Lobby, now");
});

test("a clock is wrong where the API says so, not where somebody was silent", () => {
  const skews = [undefined, 10_800, -43_200, 75];
  const told = model(
    skews.map((skew, id) => ({ ...member(id, "AA", "1", "Lobby", 7200), clock_skew_seconds: skew })),
  );
  assert.deepEqual(
    told.map((one) => one.clock),
    ["", "3 h behind", "12 h ahead", "1 min behind"],
  );
});

test("a spot is found by its beacon, else by level and name", () => {
  const [byMac, byName, moved, nowhere] = model([
    member("1", "AA", "1", "Lobby"),
    member("2", "ZZ", "2", "Lobby"),
    member("3", "AA", "2", "Lobby"), // the level has not changed yet: hysteresis
    member("4", "ZZ", "9", "Attic"),
  ]);
  assert.equal(byMac.spotKey, "AA");
  assert.equal(byName.spotKey, "BB");
  assert.equal(moved.spotKey, "BB");
  assert.equal(nowhere.spot, undefined);
  assert.equal(nowhere.spotKey, "9 ZZ");
});

test("whichever of its ids was heard, it is the spot of that beacon", () => {
  const both = directorySpots([...BEACONS, { ...BEACONS[0], mac: "DD", aliases: ["EE"], x: 9 }]);
  const data = [member("1", "EE", "1", "Lobby"), member("2", "DD", "1", "Lobby")];
  const staff = { data: { as_of: NOW, data }, failure: "", takenAt: NOW, now: () => NOW };
  const people = everyone(staff, both, "", NAMES);
  assert.deepEqual(
    people.map((person) => person.spotKey),
    ["DD", "DD"],
  );
  assert.equal(spotsToDraw(both, people).filter(({ key }) => key === "DD").length, 1);
});

test("whoever was heard long ago is gone, but not merely because the page is blind", () => {
  const old = [member("1", "AA", "1", "Lobby", 1000)];
  assert.ok(model(old)[0].gone);
  assert.ok(!model(old, { failure: "open", takenAt: NOW - 500 })[0].gone);
});

test("an unknown level has one name, and a clock that is ahead makes nobody heard later", () => {
  const [one] = model([{ ...member("1", "ZZ", null, "unknown"), timestamp: NOW + 7200 }]);
  assert.equal(one.level, "unknown");
  assert.equal(one.fresh, "now");
  assert.equal(one.title, "Staff 1: level unknown, unknown beacon ZZ, now");
});

test("levels lie as the directory has them, then others by name, unknown ones last", () => {
  const found = ["G", "unknown", "B2"].map((level) => ({ ...BEACONS[0], mac: level, level }));
  const levels = directorySpots(found);
  const data = ["unknown", "Roof 10", "B2", "Roof 2", "G"].map((level) => member(level, "ZZ", level, "A"));
  const staff = { data: { as_of: NOW, data }, failure: "", takenAt: NOW, now: () => NOW };
  const order = ["G", "B2", "Roof 2", "Roof 10", "unknown"];
  const people = everyone(staff, levels, "", NAMES);
  assert.deepEqual(people.sort(byFloor).map((one) => one.level), order);
  assert.deepEqual(levelsOf(levels, people.reverse()), order);
});

test("the chosen person is marked", () => {
  const people = model([member(1, "AA", "1", "Lobby"), member(2, "AA", "1", "Lobby")], {
    picked: "2",
  });
  assert.deepEqual(
    people.map((one) => one.picked),
    [false, true],
  );
});

test("without an answer there is nobody", () => {
  const staff = { data: null, failure: "", takenAt: 0, now: () => NOW };
  assert.deepEqual(everyone(staff, directory, "", NAMES), []);
});

test("drawn is what has a position, and every spot where somebody is", () => {
  const keys = (members) => spotsToDraw(directory, model(members)).map((spot) => spot.key);
  assert.deepEqual(keys([]), ["AA", "BB"]);
  assert.deepEqual(keys([member("1", "CC", "2", "Store")]), ["AA", "BB", "CC"]);
  const lost = ["1", "2"].map((id) => member(id, "ZZ", "9", "Attic"));
  assert.deepEqual(keys(lost), ["AA", "BB", "9 ZZ"]);
});
