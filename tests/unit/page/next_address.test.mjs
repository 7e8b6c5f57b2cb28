import assert from "node:assert/strict";
import { test } from "node:test";

import { linkedToken, nextAddress } from "../../../services/monitoring/monitoring/static/rules/access/next_address.js";

const next = (address) => nextAddress(`?next=${encodeURIComponent(address)}`);

test("a log-in leads to where its visitor wanted to go", () => {
  for (const own of ["/monitoring", "/monitoring/replay?person=7", "/monitoring?level=4"])
    assert.equal(next(own), own);
});

test("a log-in leads nowhere else", () => {
  for (const other of [
    "",
    "/",
    "//example.org/monitoring",
    "https://example.org/monitoring",
    "/\\example.org",
    "\t//example.org",
    "javascript:alert(1)//monitoring",
    "/monitoring.example.org",
    "/api/v1/audit",
    " /monitoring",
  ])
    assert.equal(next(other), "/monitoring", other);
  assert.equal(nextAddress(""), "/monitoring");
});

test("who sees one level is led to its plan, or to the wall", () => {
  const level = (address) => nextAddress(`?next=${encodeURIComponent(address)}`, "4 a");
  assert.equal(level("/monitoring?wall&level=4"), "/monitoring?wall&level=4");
  for (const other of ["", "/monitoring/system", "https://example.org"])
    assert.equal(level(other), "/monitoring?level=4%20a", other);
});

test("a wall link has a token, and what is pasted may be one", () => {
  assert.equal(linkedToken("#token=wm_a-b_c"), "wm_a-b_c");
  assert.equal(linkedToken("https://way.example/monitoring/login#token=wm_a "), "wm_a");
  for (const none of ["", "#", "#token=", "?token=wm_a", "wm_a", "#main"])
    assert.equal(linkedToken(none), null, none);
});
