import assert from "node:assert/strict";
import { test } from "node:test";

import {
  nextVisit,
  nextVisitOf,
  SILENCE_SECONDS,
  timeSpent,
  visitAt,
  visits,
} from "../../../services/monitoring/monitoring/static/rules/histories/visits.js";

const heard = (timestamp, location, more = {}) => ({
  timestamp,
  level: "1",
  location,
  mac: location,
  ...more,
});
const visitsOf = (...oldestFirst) => visits(oldestFirst.reverse());
const spans = (list) => list.map(({ location, from, to }) => [location, from, to]);

test("nobody heard is no visit", () => {
  assert.deepEqual(visits([]), []);
  assert.equal(visitAt([], 5), undefined);
});

test("a visit lasts from the first to the last detection, and on to the next spot", () => {
  const list = visitsOf(heard(0, "A"), heard(60, "A"), heard(100, "B"), heard(130, "B"));
  assert.deepEqual(spans(list), [
    ["A", 0, 100],
    ["B", 100, 130],
  ]);
  assert.equal(list[0].count, 2);
});

test("after a silence nobody knows where somebody was", () => {
  const late = 60 + SILENCE_SECONDS + 1;
  const list = visitsOf(heard(0, "A"), heard(60, "A"), heard(late, "A"), heard(late + 5, "B"));
  assert.deepEqual(spans(list), [
    ["A", 0, 60],
    ["A", late, late + 5],
    ["B", late + 5, late + 5],
  ]);
});

test("the same name on another level is another spot", () => {
  const list = visitsOf(heard(0, "Lobby"), heard(10, "Lobby", { level: "2" }));
  assert.equal(list.length, 2);
});

test("unknown locations differ by their beacon, known ones do not", () => {
  const macs = ["AA", "BB"];
  const at = (location) => visitsOf(...macs.map((mac, n) => heard(n * 10, location, { mac })));
  assert.equal(at("unknown").length, 2);
  assert.equal(at("Lobby").length, 1);
});

test("a time is in a visit, after one, or before all", () => {
  const list = visitsOf(heard(0, "A"), heard(60, "A"), heard(1000, "B"), heard(1100, "B"));
  assert.equal(visitAt(list, -1), undefined);
  assert.deepEqual([visitAt(list, 60).visit.location, visitAt(list, 60).there], ["A", true]);
  assert.deepEqual([visitAt(list, 61).visit.location, visitAt(list, 61).there], ["A", false]);
  assert.deepEqual([visitAt(list, 1000).index, visitAt(list, 5000).there], [1, false]);
});

test("every time is found in a long list", () => {
  const list = visitsOf(...Array.from({ length: 100 }, (_, n) => heard(n * 10, `${n % 7}`)));
  for (let time = 0; time < 990; time += 1) {
    const { visit } = visitAt(list, time);
    assert.ok(visit.from <= time && time <= visit.to);
  }
});

test("the time spent is added up by spot, the longest first", () => {
  const list = visitsOf(heard(0, "A"), heard(100, "B"), heard(300, "A"), heard(350, "A"));
  assert.deepEqual(
    timeSpent(list).map(({ location, seconds, visits: count }) => [location, seconds, count]),
    [
      ["B", 200, 1],
      ["A", 150, 2],
    ],
  );
});

test("from visit to visit, to both sides, and to the next one of a spot", () => {
  const list = visitsOf(heard(10, "A"), heard(20, "B"), heard(30, "A"));
  const from = (visit) => visit?.from;
  assert.deepEqual([0, 10, 25, 30].map((at) => from(nextVisit(list, at, false))), [10, 20, 30, undefined]);
  assert.deepEqual([10, 15, 30, 99].map((at) => from(nextVisit(list, at, true))), [undefined, 10, 20, 30]);
  const [{ key }] = timeSpent(list).filter((spot) => spot.location === "A");
  assert.deepEqual([0, 10, 30].map((at) => from(nextVisitOf(list, at, key))), [10, 30, 10]);
});
