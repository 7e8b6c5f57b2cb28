import assert from "node:assert/strict";
import { test } from "node:test";

import {
  lostContact,
  withDismissed,
} from "../../services/monitoring/monitoring/static/rules/lost_contact.js";

const NOW = 100_000;
const one = (id, age, order = 0) => ({ id, age, order, heardAt: NOW - age, silence: age });
const ids = (people) => people.map(({ id }) => id);

test("lost is who was heard in this shift but not for so long, the longest lost first", () => {
  const all = [one("here", 60), one("old", 4000), one("new", 1000), one("home", 13 * 3600)];
  assert.deepEqual(ids(lostContact(all, {}, 15)), ["old", "new"]);
  assert.deepEqual(ids(lostContact(all, {}, 30)), ["old"]);
  const blind = all.map((found) => ({ ...found, silence: 10 })); // an hour ago they all were there
  assert.deepEqual(ids(lostContact(blind, {}, 15)), []);
});

test("whoever was dismissed comes back once they were heard and lost again", () => {
  const all = [one("a", 4000.5), one("b", 3000)];
  const dismissed = withDismissed([all[0]], {}, all);
  assert.deepEqual(ids(lostContact(all, dismissed, 15)), ["b"]);
  assert.deepEqual(ids(lostContact([one("a", 1000), one("b", 3000)], dismissed, 15)), ["b", "a"]);
});

test("what is dismissed stays so while its shard is away, but not for ever", () => {
  const before = withDismissed([one("a", 4000)], {}, [one("a", 4000)]);
  const later = { ...one("b", 0), heardAt: NOW + 25 * 3600 };
  assert.deepEqual(Object.keys(withDismissed([one("b", 2000)], before, [one("b", 2000)])), ["a", "b"]);
  assert.deepEqual(Object.keys(withDismissed([later], before, [later])), ["b"]);
});

test("what is dismissed is forgotten when they are heard", () => {
  const before = withDismissed([one("a", 4000)], {}, [one("a", 4000)]);
  assert.deepEqual(Object.keys(withDismissed([one("b", 2000)], before, [one("a", 5), one("b", 2000)])), ["b"]);
});
