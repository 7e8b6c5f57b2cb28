import assert from "node:assert/strict";
import { test } from "node:test";

import {
  alsoText,
  idOf,
  idsIn,
  idsText,
  withId,
} from "../../../services/monitoring/monitoring/static/rules/directory/beacon_ids.js";

const IBEACON = "ibeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0:1:4660";
const BOTH = { mac: "C2A628384B08", aliases: [IBEACON] };

test("all ids of a beacon are told, a MAC in pairs", () => {
  assert.equal(idsText(BOTH), `C2:A6:28:38:4B:08, ${IBEACON}`);
  assert.equal(idsText({ mac: "C2A628384B08" }), "C2:A6:28:38:4B:08");
  assert.equal(alsoText(BOTH.aliases), `, also ${IBEACON}`);
  assert.deepEqual([alsoText([]), alsoText()], ["", ""]);
});

test("an id that somebody wrote is a MAC where it is one, else what they wrote", () => {
  assert.equal(idOf(" c2-a6-28-38-4b-08 "), "C2A628384B08");
  assert.equal(idOf(` ${IBEACON} `), IBEACON);
  assert.deepEqual(idsIn(`c2:a6:28:38:4b:08\n${IBEACON}; aabbccddeeff,`), [
    "C2A628384B08",
    IBEACON,
    "AABBCCDDEEFF",
  ]);
  assert.deepEqual(idsIn("  "), []);
});

test("a beacon is found by any of its ids", () => {
  const beacons = [{ mac: "AABBCCDDEEFF" }, BOTH];
  assert.equal(withId(beacons, IBEACON), BOTH);
  assert.equal(withId(beacons, "C2A628384B08"), BOTH);
  assert.equal(withId(beacons, ""), undefined);
});
