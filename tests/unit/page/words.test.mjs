import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ageText,
  banner,
  bannerAge,
  clock,
  duration,
  freshness,
  heardAt,
  heardText,
  isComplete,
  levelText,
  levelTitle,
  macText,
  peopleText,
  placeText,
  spotText,
  utc,
  verdictText,
} from "../../../services/monitoring/monitoring/static/rules/words.js";

const table = (name, say, rows) =>
  test(name, () => {
    for (const [given, wanted] of rows) assert.equal(say(given), wanted, `${given}`);
  });

table("freshness by age", freshness, [
  [0, "now"],
  [60, "now"],
  [61, "recent"],
  [300, "recent"],
  [301, "stale"],
]);

table("an age in words", ageText, [
  [59, "now"],
  [130, "2 min ago"],
  [800, "stale 13 min"],
]);

table("durations", duration, [
  [-3, "0 s"],
  [59.4, "59 s"],
  [60, "1 min"],
  [3600, "1 h"],
  [3660, "1 h 1 min"],
  [36_000 + 60, "10 h"],
  [2 * 86_400, "2 days"],
]);

table("levels", levelText, [
  ["4", "level 4"],
  ["unknown", "level unknown"],
  [null, "level unknown"],
]);

test("a title begins with a capital", () => {
  assert.equal(levelTitle("B2"), "Level B2");
  assert.equal(levelTitle(undefined), "Unknown level");
});

test("a place without a name is named by its beacon", () => {
  assert.equal(spotText({ location: "Lobby B" }), "Lobby B");
  assert.equal(
    spotText({ location: "unknown", mac: "AABBCCDDEEFF" }),
    "unknown beacon AA:BB:CC:DD:EE:FF",
  );
  assert.equal(spotText({ location: null }), "unknown location");
  assert.equal(placeText({ level: "4", location: "Lobby B" }), "level 4, Lobby B");
  assert.equal(macText(""), "");
  const other = "ibeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0:1:4660";
  assert.equal(macText(other), other);
});

test("one person, two people", () => {
  assert.deepEqual([0, 1, 2].map(peopleText), ["0 people", "1 person", "2 people"]);
});

test("a phone whose clock is ahead was heard when its detection came", () => {
  assert.equal(heardAt({ timestamp: 990, age_seconds: 10 }, 1000), 990);
  assert.equal(heardAt({ timestamp: 8190, age_seconds: 10 }, 1000), 990);
  assert.equal(heardAt({ timestamp: 500, age_seconds: 10 }, 1000), 500);
  assert.equal(heardAt({ timestamp: 500, age_seconds: 10, clock_skew_seconds: 490 }, 1000), 990);
});

test("times have a day only when it is another one", () => {
  const now = Math.floor(Date.now() / 1000);
  assert.doesNotMatch(clock(now), /,/);
  assert.match(clock(now - 10 * 86_400), /,/);
  assert.equal(utc(0), "1970-01-01 00:00:00 UTC");
});

test("while blind, a time stands for an age", () => {
  const now = Date.now() / 1000;
  assert.equal(heardText(now, 2, ""), "now");
  assert.equal(heardText(now, 2, "open"), `at ${clock(now)}`);
});

const verdict = {
  what: "Nothing can be read",
  rest: "Detections are taken in.",
  kept: "5 detections are safe on disk.",
  since: 930,
};

test("the verdict says since when, unless all is well", () => {
  assert.equal(
    verdictText(verdict),
    `Nothing can be read since ${clock(930)}. Detections are taken in.`,
  );
  assert.equal(verdictText({ what: "Everything is healthy", rest: "", kept: "" }), "Everything is healthy");
});

test("the banner says what is wrong, since when, and what happens next", () => {
  const source = { failure: "", failingSince: 940, takenAt: 900, seconds: 5, now: () => 1000 };
  assert.equal(banner(source) + banner({ ...source, verdict }), "");
  const text = banner({ ...source, failure: "open" });
  assert.equal(
    text,
    `Waymark cannot read this since ${clock(940)}, so it cannot be told now. It is tried again every 5 seconds.`,
  );
  const judged = banner({ ...source, failure: "open", verdict });
  assert.equal(judged, `${verdictText(verdict)} It is tried again every 5 seconds.`);
  assert.match(bannerAge({ ...source, failure: "open" }), /^Below .*known at .*, 1 min ago/);
  assert.match(bannerAge({ ...source, failure: "open", verdict }), /^5 detections .*, 1 min ago/);
  assert.equal(bannerAge(source) + bannerAge({ ...source, failure: "open", takenAt: 0 }), "");
  const later = banner({ ...source, failure: "open", now: () => 2000 });
  assert.equal(later, text, "a screen reader says each change");
  const busy = banner({ ...source, failure: "busy" });
  assert.match(busy, /Waymark is busy since/);
  assert.doesNotMatch(busy, /circuit|no ingest service/);
  assert.match(banner({ ...source, failure: "network", takenAt: 0 }), /Nothing was read before/);
});

test("an answer that does not say so is complete", () => {
  assert.ok(isComplete(null, {}, { complete: true }));
  assert.ok(!isComplete({ complete: true }, { complete: false }));
});
