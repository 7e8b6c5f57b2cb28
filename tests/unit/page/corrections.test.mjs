import assert from "node:assert/strict";
import { test } from "node:test";

import { changesText } from "../../../services/monitoring/monitoring/static/rules/directory/corrections.js";
import { Names } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

const NAMES = new Names([{ staff_id: 5, name: "Jane Tan" }]);
const staff = (...ids) => ids.map((staff_id) => ({ staff_id }));

test("what a correction changes is said before it is made: how much, and of whom", () => {
  assert.equal(
    changesText({ detections: 0, people: 0, staff: [] }, NAMES),
    "No past detection has another place: none will change.",
  );
  assert.equal(
    changesText({ detections: 1, people: 1, staff: staff(7) }, NAMES),
    "Save changes the past: 1 past detection of staff 7 gets this place.",
  );
});

test("a crowd is counted, and some of it named", () => {
  const found = { detections: 1200, people: 6, staff: staff(0, "a", 2, 3, 4, 5) };
  assert.match(changesText(found, NAMES), /past detections of staff 0, a, 2, 3 and 2 more get this place/);
  const known = { detections: 3, people: 2, staff: staff(7, 5) };
  assert.match(changesText(known, NAMES), /past detections of Jane Tan, staff 7 get this place/);
});
