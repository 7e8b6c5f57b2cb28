import assert from "node:assert/strict";
import { test } from "node:test";

import {
  isValid,
  minute,
  roleText,
  summaryText,
  validityText,
} from "../../../services/monitoring/monitoring/static/rules/access/access_words.js";
import {
  didText,
  whoText,
  withNewest,
} from "../../../services/monitoring/monitoring/static/rules/audit/audit_entries.js";
import { Names } from "../../../services/monitoring/monitoring/static/rules/people/names.js";

const NOW = 1_800_000_000;
const token = (more = {}) => ({ revoked_at: null, expires_at: null, ...more });

test("a token is valid until it is revoked or its time has come", () => {
  assert.ok(isValid(token(), NOW));
  assert.equal(validityText(token(), NOW), "until revoked");
  const later = token({ expires_at: NOW + 1 });
  assert.ok(isValid(later, NOW));
  assert.equal(validityText(later, NOW), `until ${minute(NOW + 1)}`);
  const over = token({ expires_at: NOW });
  assert.ok(!isValid(over, NOW));
  assert.equal(validityText(over, NOW), `expired ${minute(NOW)}`);
  const revoked = token({ revoked_at: NOW - 5, expires_at: NOW + 5 });
  assert.ok(!isValid(revoked, NOW));
  assert.equal(validityText(revoked, NOW), `revoked ${minute(NOW - 5)}`);
});

test("a role is told with its level, if it has one", () => {
  assert.equal(roleText({ role: "read" }), "read");
  assert.equal(roleText({ role: "read", level: null }), "read");
  assert.equal(roleText({ role: "read", level: 0 }), "read, level 0");
  assert.equal(roleText({ role: "read", level: "4", team: "Security" }), "read, level 4, team Security");
});

test("one person, two tokens", () => {
  assert.equal(summaryText(1, 2), "1 person may log in, 2 tokens are valid");
  assert.equal(summaryText(0, 1), "0 people may log in, 1 token is valid");
});

const entry = (what, of = "", details = {}, more = {}) => ({
  what,
  of,
  details,
  who: "anna",
  kind: "person",
  ...more,
});
const labelOf = (id) => ({ ab12: "HACS" })[id];
const did = (...given) => didText(entry(...given), labelOf, new Names([{ staff_id: 8, name: "Jane Tan" }]));

test("who did it", () => {
  const who = (kind, who = "x") => whoText(entry("log-in", "", {}, { kind, who }));
  assert.deepEqual(["person", "token", "command", "anybody"].map((kind) => who(kind)), [
    "x",
    "The token “x”",
    "Somebody on the machine itself",
    "Somebody",
  ]);
});

test("what they did", () => {
  assert.equal(did("log-in"), "logged in");
  const home = { state: "gone_home" };
  assert.equal(did("lost contact", "7", home), "said that staff 7 has gone home");
  assert.equal(did("lost contact", "8", {}), "saw to Jane Tan, who lost contact");
  assert.equal(did("log-in refused", "ben"), "could not log in as ben: wrong password");
  assert.equal(did("log-in refused"), "could not log in: nobody has that name");
  assert.equal(did("log-in refused", "a token"), "could not log in: that token is not valid");
  assert.equal(did("log-in refused", "", { why: "stranger" }), "could not log in: stranger");
  assert.equal(did("account put", "ben", { role: "read", new_password: false }), "gave ben the role read");
  assert.equal(
    did("account put", "ben", { role: "admin", new_password: true }),
    "gave ben the role admin and a new password",
  );
  assert.equal(
    did("token made", "ab12", { label: "HACS", role: "read", expires_at: null, level: "4" }),
    "made the token “HACS” (read, level 4, until revoked)",
  );
  assert.equal(
    did("token made", "ab12", { label: "HACS", role: "ingest", expires_at: NOW }),
    `made the token “HACS” (ingest, until ${minute(NOW)})`,
  );
  assert.equal(did("token made", "ab12", { label: "HACS", role: "admin" }), "made the token “HACS” (admin)");
  assert.equal(did("token revoked", "ab12"), "revoked the token “HACS”");
  assert.equal(did("token revoked", "ffff"), "revoked the token ffff");
  assert.equal(
    did("beacon put", "AABBCCDDEEFF", { level: "4", location: "Lobby B", x: 1, y: 2 }),
    "saved the beacon AA:BB:CC:DD:EE:FF: level 4, Lobby B",
  );
  const one = { level: "4", location: "Roof", aliases: "AABBCC000001 AABBCC000002", gone: "AABBCC000001" };
  assert.equal(
    did("beacon put", "AABBCCDDEEFF", one),
    "saved the beacon AA:BB:CC:DD:EE:FF: level 4, Roof, also AA:BB:CC:00:00:01, AA:BB:CC:00:00:02, made one with AA:BB:CC:00:00:01",
  );
  assert.equal(did("person forgotten", "", { detections: 3 }), "forgot somebody, with 3 detections");
  const jane = { name: "Jane Tan", team: "", on_duty: false };
  assert.equal(did("person put", "8", jane), "saved staff 8: Jane Tan, off duty");
  // Of somebody who was forgotten since.
  assert.equal(did("person put", "forgotten", {}), "saved somebody who is forgotten: no more is known");
  assert.equal(did("person removed", "forgotten", {}), "took the name of somebody who is forgotten away");
  assert.equal(did("lost contact", "forgotten", {}), "saw to somebody who is forgotten, who lost contact");
  assert.equal(did("beacons imported", "", { added: 2, changed: 0 }), "imported beacons: 2 added, 0 changed");
});

test("what nobody has words for yet is told as it is", () => {
  assert.equal(did("setting changed", "level", { to: 4, from: null }), "setting changed level, to 4, from null");
  assert.equal(did("constructor"), "constructor");
});

const entries = (...ids) => ids.map((id) => ({ id }));
const ids = (found) => found.map(({ id }) => id).join("");

test("what was loaded stays below the newest entries", () => {
  const page = { data: entries("f", "e", "d"), next: "d" };
  assert.equal(ids(withNewest([], page)), "fed");
  assert.equal(ids(withNewest(entries("e", "d", "c", "b"), page)), "fedcb");
  assert.equal(ids(withNewest(entries("f", "e", "d", "c"), page)), "fedc");
});

test("where entries may be missing between, older ones are loaded anew", () => {
  const page = { data: entries("i", "h", "g"), next: "g" };
  assert.equal(ids(withNewest(entries("e", "d", "c"), page)), "ihg");
});

test("a page that is all of it is all of it", () => {
  assert.equal(ids(withNewest([], { data: [], next: null })), "");
  assert.equal(ids(withNewest(entries("c", "b"), { data: entries("c"), next: null })), "c");
});
