import assert from "node:assert/strict";
import { test } from "node:test";

import { byHowOften } from "../../../services/monitoring/monitoring/static/rules/directory/unknown_beacons.js";

test("what was heard once stands apart, and the order stays", () => {
  const heard = (mac, count) => ({ mac, count });
  const found = [heard("new", 200), heard("phone", 1), heard("watch", 2), heard("car", 1)];
  const { often, once } = byHowOften(found);
  assert.deepEqual([often, once].map((list) => list.map(({ mac }) => mac)), [["new", "watch"], ["phone", "car"]]);
});
