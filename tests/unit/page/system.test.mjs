import assert from "node:assert/strict";
import { test } from "node:test";

import {
  memoryText,
  meterLevel,
  sizeText,
} from "../../../services/monitoring/monitoring/static/rules/system/memory_use.js";
import { owntracksCounts } from "../../../services/monitoring/monitoring/static/rules/system/owntracks_counts.js";
import {
  CIRCUIT_MEANS,
  CIRCUIT_WORDS,
  backupText,
  circuitMeans,
  health,
  readsByMinute,
  readsText,
  setAsideText,
  shardShares,
  storageText,
  warningTexts,
} from "../../../services/monitoring/monitoring/static/rules/system/system_state.js";

const MIB = 1024 * 1024;

test("the meter shows the ratio of what is used to the limit", () => {
  assert.deepEqual(meterLevel({ used_bytes: 16 * MIB, limit_bytes: 64 * MIB }), {
    percent: 25,
    isFull: false,
  });
  assert.deepEqual(meterLevel({ used_bytes: 48 * MIB, limit_bytes: 64 * MIB }), {
    percent: 75,
    isFull: false,
  });
  assert.deepEqual(meterLevel({ used_bytes: 60, limit_bytes: 64 }), {
    percent: 93.75,
    isFull: true,
  });
  assert.equal(meterLevel({ used_bytes: 90, limit_bytes: 60 }).percent, 100);
});

test("without a limit there is no meter", () => {
  for (const memory of [undefined, null, {}, { used_bytes: 5, limit_bytes: null }])
    assert.equal(meterLevel(memory), null);
});

test("memory in words", () => {
  assert.equal(memoryText({ used_bytes: 16 * MIB, limit_bytes: 64 * MIB }), "16 MiB of 64 MiB");
  assert.equal(memoryText({ used_bytes: 16 * MIB, limit_bytes: null }), "16 MiB, no limit");
  assert.equal(memoryText(null), "–");
  assert.deepEqual([1, 2048, 1.5 * MIB].map(sizeText), ["1 KiB", "2 KiB", "1.5 MiB"]);
});

const service = (more = {}) => ({
  answers: true,
  queued: 0,
  mongodb: { reachable: true },
  ...more,
});
const away = { mongodb: { reachable: false } };

test("every state has a name of its own", () => {
  const names = Object.values(CIRCUIT_WORDS).map(([name]) => name);
  assert.deepEqual(names, ["Closed", "Half-open", "Closed, busy", "Open", "Unknown"]);
  for (const means of Object.values(CIRCUIT_MEANS))
    assert.deepEqual(Object.keys(means), Object.keys(CIRCUIT_WORDS));
});

test("a circuit means no more than the database lets it", () => {
  const part = { mongodb: { reachable: true, complete: false } };
  const means = (circuit, state, ...services) => {
    const { says, sign } = circuitMeans(circuit, state, services.map(service));
    return `${sign}: ${says}`;
  };
  assert.equal(means("reads", "closed", {}, {}), "closed: Everything can be read");
  assert.equal(means("reads", "closed", {}, away), "closed: Everything can be read"); // by the other
  assert.equal(means("reads", "closed", away, away), "open: Nothing new can be read");
  assert.equal(means("reads", "half-open", away, { answers: false }), "open: Nothing new can be read");
  assert.equal(means("reads", "closed", part, part), "busy: Not everything can be read");
  assert.equal(means("ingest", "closed", away), "busy: Detections come in, and wait for the database");
  assert.equal(means("ingest", "open", away), "open: No detections come in");
  assert.equal(means("reads", "closed", { mongodb: null }), "closed: Everything can be read");
});

test("what was set aside is told with where it is and what to do", () => {
  assert.equal(setAsideText([{ name: "ingest-1", set_aside: 0 }]), "");
  const text = setAsideText([
    { name: "ingest-1", set_aside: 1200 },
    { name: "ingest-2", set_aside: 0 },
  ]);
  assert.match(text, /1,200 in the spool of ingest-1\. It is not stored/);
  assert.match(text, /save the file/);
  assert.doesNotMatch(text, /ingest-2/);
});

test("what an operator has to see to is told once", () => {
  const full = { what: "The spool is full", todo: "Make room." };
  const clock = { what: "This machine's clock is behind", todo: "Set it." };
  const services = [{ warnings: [full] }, { warnings: [] }, { warnings: [clock, full] }];
  const texts = ["The spool is full. Make room.", "This machine's clock is behind. Set it."];
  assert.deepEqual(warningTexts(services), texts);
});

test("the health of a service", () => {
  assert.equal(health(service()), "healthy");
  assert.equal(health({ answers: true }), "healthy"); // the gateway has no database
  assert.equal(health(service(away)), "no database");
  assert.equal(health(service({ answers: false, ...away })), "silent");
});

const reads = [
  { timestamp: 60, latency_ms: 4 },
  { timestamp: 119, latency_ms: 9 },
  { timestamp: 120, latency_ms: null },
  { timestamp: 130, latency_ms: 2 },
];

test("reads are gathered by minute: the slowest, and how many failed", () => {
  assert.deepEqual(readsByMinute(reads), [
    { timestamp: 60, slowest: 9, failed: 0, count: 2 },
    { timestamp: 120, slowest: 2, failed: 1, count: 2 },
  ]);
});

test("reads in one sentence", () => {
  assert.equal(readsText(reads), "4 reads: median 4 ms, slowest 9 ms, 1 failed");
  assert.equal(readsText([]), "0 reads: median – ms, slowest – ms, 0 failed");
});

test("shards by name, with their share of all detections", () => {
  const shares = shardShares([
    { name: "shard2", documents: 1, bytes: 1 },
    { name: "shard1", documents: 3, bytes: 1 },
  ]);
  assert.deepEqual(
    shares.map((one) => [one.name, one.percent]),
    [
      ["shard1", 75],
      ["shard2", 25],
    ],
  );
  assert.equal(shardShares([{ name: "empty", documents: 0, bytes: 0 }])[0].percent, 0);
});

test("how long the disk lasts is said in words, and what to do when that is soon", () => {
  const storage = {
    free_bytes: 5 * 1024 * MIB,
    detection_bytes: 268.6,
    sealed_bytes: null,
    detections_a_day: 302_400,
    days_left: 66.1,
    retention_days: 0,
    seal_hours: 48,
    low: false,
  };
  assert.equal(
    storageText(storage),
    "5.0 GiB free: full in 66 days, at 302,400 detections a day, 269 bytes each",
  );
  assert.match(storageText({ ...storage, days_left: 13.9, low: true }), /^The disk is full in 13 days: make room/);
  assert.match(
    storageText({ ...storage, days_left: null, retention_days: 30 }),
    /^5.0 GiB free: enough for the 30 days that are kept, at 302,400/,
  );
  assert.match(storageText({ ...storage, sealed_bytes: 7.62 }), /269 bytes each, 7.6 once sealed$/);
  const isYoung = { ...storage, detections_a_day: null, days_left: null };
  assert.equal(storageText(isYoung), "5.0 GiB free; for how long is not known yet");
  assert.equal(storageText(null), "");
});

test("what OwnTracks sent is added up, the most first", () => {
  const first = { owntracks: { stored: 3, ignored: { location: 2, status: 2, lwt: 1 } } };
  const second = { owntracks: { stored: 4, ignored: { lwt: 9 } } };
  const off = { owntracks: null };
  assert.deepEqual(owntracksCounts([first, second, off]), [
    { what: "stored", count: 7 },
    { what: "ignored: lwt", count: 10 },
    { what: "ignored: location", count: 2 },
    { what: "ignored: status", count: 2 },
  ]);
  assert.deepEqual(owntracksCounts([{ owntracks: { stored: 0, ignored: {} } }]), [
    { what: "stored", count: 0 },
  ]);
  assert.deepEqual(owntracksCounts([off]), []);
  assert.deepEqual(owntracksCounts([]), []);
});

test("the age of the last backup is told where a schedule makes them", () => {
  const now = 1_000_000;
  const backup = { scheduled: true, started_at: now - 10_900, finished_at: now - 10_800, failed: false, late: false };
  assert.equal(backupText(backup, now), "Last backup: 3 h ago");
  const old = { ...backup, finished_at: now - 3 * 86400, late: true };
  assert.equal(backupText(old, now), "Last backup: 3 days ago: look whether its schedule runs");
  assert.equal(
    backupText({ ...old, failed: true }, now),
    "Last backup: 3 days ago; the next one failed: backup.json, beside the data, says why",
  );
  assert.match(backupText({ ...backup, finished_at: null, failed: true }, now), /^There is no backup yet; the next/);
  assert.equal(backupText({ ...backup, scheduled: false }, now), "");
  assert.equal(backupText(null, now), "");
});
