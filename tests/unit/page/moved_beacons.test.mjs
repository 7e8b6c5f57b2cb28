import assert from "node:assert/strict";
import { test } from "node:test";

import { movesOf } from "../../../services/monitoring/monitoring/static/rules/directory/moved_beacons.js";

const beacon = (level, x = null) => ({ mac: "AABBCC000001", level, location: "Lobby", x, y: x });

test("of a beacon that gets another id, that is told", () => {
  const moves = [{ before: beacon("1"), after: { ...beacon("1"), aliases: ["AABBCC000002"] } }];
  const [{ text }] = movesOf({ changed: 1, moves }).lines;
  assert.equal(text, "level 1, Lobby → level 1, Lobby, also AA:BB:CC:00:00:02");
});

test("of each beacon that a file moves, both places are told", () => {
  const moves = [{ before: beacon("1"), after: beacon("2", 5) }];
  assert.deepEqual(movesOf({ changed: 3, moves }), {
    lines: [{ key: "AA:BB:CC:00:00:01", text: "level 1, Lobby → level 2, Lobby (5, 5)" }],
    more: 2,
  });
  assert.deepEqual(movesOf({}), { lines: [], more: 0 });
});
