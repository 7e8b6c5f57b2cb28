import assert from "node:assert/strict";
import { test } from "node:test";

import {
  bestMatch,
  finder,
  isNameOf,
  staffIdOf,
} from "../../../services/monitoring/monitoring/static/rules/people/people_search.js";
import {
  idsMeant,
  severalMeant,
  staffIdsOf,
} from "../../../services/monitoring/monitoring/static/rules/people/people_meant.js";
import { Names } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

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

const NAMED = [
  { staff_id: 7, name: "Zoë Tan", team: "Front desk" },
  { staff_id: 8, name: "Jane Tan", team: "Security" },
  { staff_id: "g9", name: "Jane Tan", team: "Security" },
  { staff_id: 11, name: "Anna", team: "Front desk" },
  { staff_id: 12, name: "Lim, Bob", team: "Front desk" },
];
const NAMES = new Names(NAMED);
const meant = (text, heard = []) => idsMeant(text, NAMES, new Set(heard));
const several = (text) => severalMeant(text, NAMES, new Set(["8", "5"])).map(({ ids }) => ids.join("|"));

test("a name or a team finds people, with accents or without, and so does their id", () => {
  const people = NAMED.map((named, n) => ({ ...one(String(named.staff_id), `Room ${n}`), named }));
  const names = (search) => people.filter(finder(search, SPOTS)).map(({ named }) => named.name);
  assert.deepEqual(names("zoe  t"), ["Zoë Tan"]);
  assert.deepEqual(names("front desk"), ["Zoë Tan", "Anna", "Lim, Bob"]);
  assert.deepEqual(names("staff 7"), ["Zoë Tan"]);
  assert.equal(bestMatch(people, "anna").id, "11");
  const place = [{ location: "Anna" }];
  assert.deepEqual(people.filter(finder("anna", place)).map(({ id }) => id), ["11"]);
});

test("whom somebody types is known by name, a part of it, or id", () => {
  assert.deepEqual(meant("zoe tan"), ["7"]);
  assert.deepEqual(meant(" Z "), ["7"]);
  assert.deepEqual(meant("staff 7"), ["7"]);
  assert.deepEqual(meant("staff 77"), ["77"]);
  assert.deepEqual(meant("nobody-at-all"), ["nobody-at-all"]);
  assert.deepEqual(meant("1"), ["1"], "a number is an id, and no part of another");
  assert.deepEqual(meant(""), [""]);
});

test("a name of several is asked about, and what the lists write of them is not", () => {
  assert.deepEqual(meant("Jane Tan"), ["8", "g9"]);
  assert.deepEqual(meant("tan"), ["8", "g9", "7"]);
  assert.deepEqual(meant("Jane Tan (g9)"), ["g9"]);
  assert.deepEqual(meant("Anna", ["Anna"]), ["Anna", "11"], "an id may be another's name");
});

test("several are typed with commas, and ids with spaces too", () => {
  assert.deepEqual(several("Zoë Tan, jane, 8"), ["7", "8|g9", "8"]);
  assert.deepEqual(several("5 staff 8, anna"), ["5", "8", "11"]);
  assert.deepEqual(several("Lim, Bob"), ["12"]);
  assert.deepEqual(several(""), []);
});
