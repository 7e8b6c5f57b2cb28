import assert from "node:assert/strict";
import { test } from "node:test";

import {
  answerText,
  replayAddress,
  spanOf,
  stayText,
  widened,
  within,
} from "../../../services/monitoring/monitoring/static/rules/places/visitors.js";

const NOON = new Date(2024, 5, 7, 12).getTime() / 1000;
const ROOM = { level: "4", location: "Room 4-03", at: NOON, minutes: 15 };
const SPAN = spanOf(ROOM, NOON + 9999);

test("the span is around the time, and ends now at the latest", () => {
  assert.deepEqual(SPAN, { from: NOON - 900, to: NOON + 900 });
  assert.deepEqual(spanOf(ROOM, NOON + 60.9), { from: NOON - 900, to: NOON + 60 });
  assert.deepEqual(widened({ from: 100, to: 200 }), { from: 0, to: 500 });
});

test("who touches the span was there", () => {
  const visits = [
    { from: NOON - 2000, to: NOON - 901 },
    { from: NOON - 2000, to: NOON - 900 },
    { from: NOON, to: NOON },
    { from: NOON + 900, to: NOON + 2000 },
    { from: NOON + 901, to: NOON + 2000 },
  ];
  assert.deepEqual(within(visits, SPAN), visits.slice(1, 4));
});

test("a visit that goes beyond the span says so", () => {
  const text = (from, to) => stayText({ from: NOON + from, to: NOON + to }, SPAN);
  assert.match(text(-60, 60), /^\d\d:59.* – \d\d:01/);
  assert.match(text(-901, 60), /^before \d\d:45.* – \d\d:01/);
  assert.match(text(-60, 901), /^\d\d:59.* – after \d\d:15/);
  assert.match(text(0, 20), /^at \d\d:00/);
});

test("a person with two visits is one person", () => {
  const some = [{ staff_id: 7 }, { staff_id: 7 }, { staff_id: "ann" }];
  assert.match(answerText(ROOM, SPAN, some), /^2 people heard in Room 4-03, level 4, between .*\.$/);
  assert.match(answerText(ROOM, SPAN, []), /^Nobody was heard in Room 4-03, level 4, between/);
  const anywhere = { ...ROOM, level: "" };
  assert.match(answerText(anywhere, SPAN, []), /^Nobody was heard in Room 4-03, any level, between/);
});

test("replay opens at the time that was asked for, or at the end of the visit that is nearer", () => {
  const at = (time) => new URLSearchParams(replayAddress(VISIT, time).split("?")[1]).get("at");
  const VISIT = { staff_id: "a b", from: 5000, to: 6000 };
  assert.deepEqual([at(5500), at(10), at(9999)], ["5500", "5000", "6000"]);
  assert.match(replayAddress(VISIT, 1), /\?person=a%20b&from=4100&to=6900&at=5000$/);
});
