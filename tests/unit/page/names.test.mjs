import assert from "node:assert/strict";
import { test } from "node:test";

import { Names, plain, shortName } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

const named = (staff_id, name) => ({ staff_id, name, team: "", note: "", on_duty: true });
const NAMES = new Names([
  named(7, "Jane Tan"),
  named(10, "Jane Tan"),
  named("guard-2", "Zoë"),
  named(3, "Mohammed Abdul Rahman"),
]);

test("whoever has a name is called by it, everybody else by their id", () => {
  assert.equal(NAMES.called("guard-2"), "Zoë");
  assert.equal(NAMES.called("8"), "Staff 8");
  assert.equal(NAMES.mention("guard-2"), "Zoë");
  assert.equal(NAMES.mention("8"), "staff 8");
  assert.equal(new Names([]).called("7"), "Staff 7");
});

test("two of one name are told apart by their ids", () => {
  assert.equal(NAMES.called("7"), "Jane Tan (7)");
  assert.equal(NAMES.called("10"), "Jane Tan (10)");
  assert.deepEqual(["7", "guard-2", "8"].map((id) => NAMES.idBeside(id)), ["", "guard-2", ""]);
});

test("several are named in a sentence, and the others counted", () => {
  assert.equal(NAMES.mentionAll([9, "guard-2", 12], 0), "Zoë, staff 9, 12");
  assert.equal(NAMES.mentionAll(["guard-2"], 2), "Zoë and 2 more");
});

test("of a name there is as much as there is room for", () => {
  const short = (name) => [20, 8, 6, 4].map((length) => shortName(name, length));
  assert.deepEqual(short("Siti Lim"), ["Siti Lim", "Siti Lim", "Siti L", "Siti"]);
  assert.deepEqual(short("Mohammed Abdul Rahman"), ["Mohammed AR", "Mohammed", "Moham…", "Moh…"]);
  assert.deepEqual(short("Zoë"), ["Zoë", "Zoë", "Zoë", "Zoë"]);
  assert.deepEqual(short("𠮷𠮷𠮷𠮷𠮷"), ["𠮷𠮷𠮷𠮷𠮷", "𠮷𠮷𠮷𠮷𠮷", "𠮷𠮷𠮷𠮷𠮷", "𠮷𠮷𠮷…"]);
});

test("names come by the alphabet, then ids by number", () => {
  const ids = ["10", "9", "guard-2", "3", "7", "12"].sort(NAMES.compare);
  assert.deepEqual(ids, ["7", "10", "3", "guard-2", "9", "12"]);
});

test("a search knows no capitals, accents, or blanks that do not count", () => {
  assert.equal(plain("  ZOË   Tan "), "zoe tan");
});
