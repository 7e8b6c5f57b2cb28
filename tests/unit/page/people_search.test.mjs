import assert from "node:assert/strict";
import { test } from "node:test";

import {
  bestMatch,
  finder,
  isNameOf,
  staffIdOf,
  staffIdsOf,
} from "../../../services/monitoring/monitoring/static/rules/people/people_search.js";

const one = (id, location, level = "1", mac = "AA00") => ({ id, location, level, mac });
const PEOPLE = [one("17", "Spot 12"), one("7", "Spot 1"), one("70", "Lobby", "7", "BB17")];
const SPOTS = ["Spot 1", "Spot 12", "Lobby", "Store"].map((location) => ({ location }));
const found = (search) => PEOPLE.filter(finder(search, SPOTS)).map(({ id }) => id);

test("a part of a name, a place or a beacon is enough", () => {
  assert.deepEqual(found("7"), ["17", "7", "70"]);
  assert.deepEqual(found("level 7"), ["70"]);
  assert.deepEqual(found(" bb17 "), ["70"]);
  assert.deepEqual(found("spot"), ["17", "7"]);
  assert.deepEqual(found(""), ["17", "7", "70"]);
});

test("the whole name of a place finds who is there", () => {
  assert.deepEqual(found("spot 1"), ["7"]);
  assert.deepEqual(found("Store"), []);
  assert.ok(isNameOf("spot 1", SPOTS[0]) && !isNameOf("spot 1", SPOTS[1]));
});

test("a place of the same name hides nobody", () => {
  const people = [one("12", "Lobby"), one("3", "12")];
  assert.deepEqual(people.filter(finder("12", [{ location: "12" }])), people);
});

test("whoever has that very name is meant, else the first", () => {
  assert.equal(bestMatch(PEOPLE, "7").id, "7");
  assert.equal(bestMatch(PEOPLE, "Staff 70").id, "70");
  assert.equal(bestMatch(PEOPLE, "spot").id, "17");
  assert.equal(bestMatch([], "spot"), undefined);
});

test("somebody may be typed as the lists write them", () => {
  assert.deepEqual(["7", " staff 7 ", "Staff  7", "staff", "staff-7"].map(staffIdOf), ["7", "7", "7", "staff", "staff-7"]);
  assert.deepEqual(staffIdsOf("Staff 7, staff 8 9,staff ann"), ["7", "8", "9", "ann"]);
  assert.deepEqual(staffIdsOf("staff, mystaff 7"), ["staff", "mystaff", "7"]);
});
