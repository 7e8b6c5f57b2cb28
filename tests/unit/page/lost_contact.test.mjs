import assert from "node:assert/strict";
import { test } from "node:test";

import {
  lostContact,
  seenToText,
} from "../../../services/monitoring/monitoring/static/rules/people/lost_contact.js";

const NOW = 100_000;
const one = (id, age, order = 0) => ({ id, age, order, heardAt: NOW - age, silence: age });
const said = (state) => ({ lost_contact: { state, by: "anna", at: NOW } });
const ids = (people) => people.map(({ id }) => id);

test("lost is who was heard in this shift but not for so long, the longest lost first", () => {
  const all = [one("here", 60), one("old", 4000), one("new", 1000), one("home", 13 * 3600)];
  assert.deepEqual(ids(lostContact(all, 15)), ["old", "new"]);
  assert.deepEqual(ids(lostContact(all, 30)), ["old"]);
  const blind = all.map((found) => ({ ...found, silence: 10 })); // an hour ago they all were there
  assert.deepEqual(ids(lostContact(blind, 15)), []);
});

test("nobody who is off duty is looked for", () => {
  const all = [true, false].map((on_duty) => ({ ...one(String(on_duty), 2000), named: { on_duty } }));
  assert.deepEqual(ids(lostContact(all, 15)), ["true"]);
});

test("whoever has gone home is not looked for, who is seen to stays in their place", () => {
  const seen = { ...one("a", 4000.5), ...said("acknowledged") };
  const all = [seen, { ...one("home", 3000), ...said("gone_home") }, one("b", 2000)];
  assert.deepEqual(ids(lostContact(all, 15)), ["a", "b"]);
  assert.match(seenToText(seen), /^anna saw to it, .*\d\d:\d\d/);
});
