import assert from "node:assert/strict";
import { test } from "node:test";

import {
  changesOf,
  directoryText,
  findNamed,
} from "../../../services/monitoring/monitoring/static/rules/people/named_people.js";

const named = (staff_id, name, team = "", more = {}) => ({
  staff_id,
  name,
  team,
  note: "",
  on_duty: true,
  ...more,
});
const ALL = [
  named(7, "Jane Tan", "Front desk"),
  named(8, "Zoë Lim", "Security", { on_duty: false, note: "night shift" }),
  named("guard-2", "Bob", "Security"),
];
const names = (people) => people.map(({ name }) => name);

test("people are found by name, id, team and note, of one team or of all", () => {
  assert.deepEqual(names(findNamed(ALL, "", "")), names(ALL));
  assert.deepEqual(names(findNamed(ALL, "zoe", "")), ["Zoë Lim"]);
  assert.deepEqual(names(findNamed(ALL, "guard", "")), ["Bob"]);
  assert.deepEqual(names(findNamed(ALL, "NIGHT", "Security")), ["Zoë Lim"]);
  assert.deepEqual(names(findNamed(ALL, "night", "Front desk")), []);
});

test("the summary says what is counted", () => {
  assert.equal(directoryText(ALL, ALL, ""), "3 people with a name, 1 off duty");
  assert.equal(directoryText([ALL[0]], [ALL[0]], ""), "1 person with a name");
  assert.equal(
    directoryText(ALL, ALL.slice(1), "Security"),
    "2 of 3 people of the team Security, 1 off duty",
  );
});

test("what a file changes is told of each person, and the others are counted", () => {
  const after = { ...ALL[1], team: "Front desk", on_duty: true };
  assert.deepEqual(changesOf({ changed: 3, changes: [{ before: ALL[1], after }] }), {
    lines: [
      {
        key: "staff 8",
        text: "Zoë Lim, Security, night shift, off duty → Zoë Lim, Front desk, night shift",
      },
    ],
    more: 2,
  });
  assert.deepEqual(changesOf({}), { lines: [], more: 0 });
});
