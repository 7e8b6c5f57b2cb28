import assert from "node:assert/strict";
import { test } from "node:test";

import {
  findPeople,
  remarkOf,
  siteOf,
  sitesText,
  siteText,
} from "../../../services/monitoring/monitoring/static/rules/sites/sites.js";

const NOW = 100_000;
const AHEAD = 500; // the site's clock

/** Somebody whom a site heard so long ago, by its own clock. */
const heard = (staff_id, ago, more = {}) => ({
  staff_id,
  timestamp: NOW + AHEAD - ago,
  age_seconds: ago,
  level: "4",
  location: `Room ${staff_id}`,
  mac: "A",
  ...more,
});

const report = (people, more = {}) => ({
  name: "North",
  url: "https://north.example",
  staff: JSON.stringify({ as_of: NOW + AHEAD, complete: true, data: people }),
  people: JSON.stringify({ data: [{ staff_id: 7, name: "Jane Tan", team: "Desk", on_duty: true }] }),
  has_more: false,
  read_at: NOW,
  taken_at: NOW + AHEAD,
  problem: "",
  failing_since: null,
  ...more,
});
const site = (people, more, now = NOW) => siteOf(report(people, more), now, 15);
const ids = (people) => people.map(({ id }) => id);

test("who is here and who is lost is told by the site's clock, not by ours", () => {
  const { here, lost, complete } = site([heard(7, 5), heard(8, 890), heard(9, 1000), heard(1, 90_000)]);
  assert.deepEqual(ids(here), ["7", "8"]);
  assert.deepEqual(ids(lost), ["9"]);
  assert.equal(here[0].age, 5);
  assert.equal(here[0].called, "Jane Tan");
  assert.ok(complete);
  const later = site([heard(7, 5), heard(8, 890)], {}, NOW + 20);
  assert.deepEqual(ids(later.here), ["7"]);
  assert.equal(later.here[0].age, 25);
});

test("while a site cannot be read, who was there stays there", () => {
  const failing = { problem: "the gateway did not answer", failing_since: NOW + 10 };
  const gone = site([heard(7, 5)], failing, NOW + 4000);
  assert.deepEqual([ids(gone.here), ids(gone.lost)], [["7"], []]);
  assert.ok(gone.here[0].isPast);
  assert.match(siteText(gone), /^Cannot be read since .*: the gateway did not answer; this is of /);
  const never = site([], { ...failing, staff: null, people: null, read_at: null, taken_at: null });
  assert.deepEqual([never.takenAt, never.here, never.complete], [0, [], false]);
  assert.doesNotMatch(siteText(never), /this is of/);
});

test("what is no list is a problem, and no empty site", () => {
  for (const staff of ["[}", "{}", "null", "7"]) {
    const wrong = site([], { staff });
    assert.match(siteText(wrong), /something else than who is there/);
    assert.equal(wrong.takenAt, 0);
  }
  assert.deepEqual(ids(site([heard(7, 5)], { people: "[}" }).here), ["7"]); // without their names
});

test("it says where people may be missing", () => {
  assert.match(siteText(site([heard(7, 5)])), /^as of /);
  const more = site([heard(7, 5)], { has_more: true });
  assert.match(siteText(more), /some people may be missing/);
  assert.equal(sitesText([more]), "1 person or more here at 1 site");
});

test("all sites in a sentence", () => {
  const south = site([heard(3, 2000)], { name: "South", problem: "away", taken_at: NOW + AHEAD });
  const texts = sitesText([site([heard(7, 5), heard(8, 1000)]), south]);
  assert.equal(texts, "1 person here at 2 sites; 2 lost contact; South cannot be read now");
});

test("whoever has lost contact comes first, the longest lost of all sites before", () => {
  const north = site([heard(7, 5), heard(8, 1000)]);
  const south = site([heard(7, 5), heard(9, 2000)], { name: "South" });
  const keys = (search) => findPeople([north, south], search).map(({ siteName, id }) => siteName + id);
  assert.deepEqual(keys(""), ["South9", "North8", "North7", "South7"]);
  assert.deepEqual(keys("south"), ["South9", "South7"]);
  assert.deepEqual(keys("jane"), ["North7", "South7"]);
  assert.deepEqual(keys("room 8"), ["North8"]);
  assert.match(remarkOf(south.lost[0]), /^level 4, Room 9; lost contact$/);
});

test("what is no person is left out, and keeps nobody else from the screen", () => {
  const right = heard(7, 5);
  const wrong = [
    null,
    {},
    { staff_id: 8 },
    ...[
      { timestamp: "x" },
      { timestamp: 1e300 },
      { clock_skew_seconds: "z" },
      { mac: 5, location: null },
      { location: {} },
      { staff_id: {} },
      { staff_id: 2 ** 60 },
    ].map((more) => heard(9, 5, more)),
    right, // twice
  ];
  const { here, complete, problem } = site([right, ...wrong]);
  assert.deepEqual([ids(here), complete, problem], [["7"], false, ""]);
  const people = JSON.stringify({ data: [null, { staff_id: 7 }, { staff_id: 7, name: 7 }] });
  assert.deepEqual(site([right], { people }).here[0].called, "Staff 7");
  for (const one of here) new Date(one.heardAt * 1000).toISOString();
});

test("a site that was not read for long is not of now, and loses nobody", () => {
  const late = site([heard(7, 5)], {}, NOW + 1500);
  assert.deepEqual([ids(late.here), ids(late.lost)], [["7"], []]);
  assert.match(siteText(late), /it has not answered yet/);
  const wrong = site([], { staff: "{}" });
  assert.doesNotMatch(siteText(wrong), /1970, 12:00|1970, 00:00/);
});
