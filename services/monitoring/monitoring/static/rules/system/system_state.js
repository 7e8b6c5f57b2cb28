// What the health monitor's report says, in a word for each thing. Pure.
import { compare, duration } from "../words.js";
import { sizeText } from "./memory_use.js";

/** The name of each state, and what it means. @type {Record<CircuitState, [string, string]>} */
export const CIRCUIT_WORDS = {
  closed: ["Closed", "An ingest service answers through this circuit."],
  "half-open": [
    "Half-open",
    "Not every ingest service answers. The gateway tries the missing one again and again.",
  ],
  busy: [
    "Closed, busy",
    "An ingest service answers, but more is asked at once than this circuit lets wait: the rest has to be repeated after a second.",
  ],
  open: [
    "Open",
    "No ingest service answers through this circuit. The gateway tries each again and again.",
  ],
  unknown: ["Unknown", "The gateway does not tell this service."],
};

/** What each state of a circuit means for people. @type {Record<string, Record<CircuitState, string>>} */
export const CIRCUIT_MEANS = {
  ingest: {
    closed: "Detections come in",
    "half-open": "Detections come in, by fewer services",
    busy: "Detections come in, some of them late",
    open: "No detections come in",
    unknown: "Unknown",
  },
  reads: {
    closed: "Everything can be read",
    "half-open": "Everything can be read, by fewer services",
    busy: "Everything can be read, some of it late",
    open: "Nothing can be read",
    unknown: "Unknown",
  },
};

/** What is left of it without the database. @type {Record<string, { away: string, part: string }>} */
const WITHOUT_DATABASE = {
  ingest: {
    away: "Detections come in, and wait for the database",
    part: "Detections come in, and some wait for the database",
  },
  reads: { away: "Nothing new can be read", part: "Not everything can be read" },
};

/**
 * What a circuit means for people, and the state whose sign it has: through a closed one all services
 * answer, also while none of them reaches the database.
 * @param {"ingest" | "reads"} circuit
 * @param {CircuitState} state
 * @param {Pick<ServiceReport, "answers" | "mongodb">[]} services
 * @returns {{ says: string, sign: CircuitState }}
 */
export function circuitMeans(circuit, state, services) {
  const databases = services.flatMap(({ answers, mongodb }) => (answers && mongodb ? [mongodb] : []));
  const without = WITHOUT_DATABASE[circuit];
  if (state !== "open" && state !== "unknown" && databases.length) {
    if (databases.every((database) => !database.reachable))
      return { says: without.away, sign: circuit === "reads" ? "open" : "busy" };
    if (databases.some(({ reachable, complete }) => reachable && complete === false))
      return { says: without.part, sign: "busy" };
  }
  return { says: CIRCUIT_MEANS[circuit][state], sign: state };
}

/**
 * What a state says of then, when nobody knows how it is now.
 * @param {string} state
 */
export const pastText = (state) => `Was ${state.toLowerCase()}`;

/**
 * What was set aside in the spools, and what to do; "" when nothing was.
 * @param {Pick<ServiceReport, "name" | "set_aside">[]} services
 */
export function setAsideText(services) {
  const unwell = services.filter((service) => service.set_aside > 0);
  if (!unwell.length) return "";
  const where = unwell.map((service) => `${service.set_aside.toLocaleString()} in the spool of ${service.name}`);
  return `Set aside, as damaged or refused by the database: ${where.join(", ")}. It is not stored. The log of that service names it and its file: save the file, look at the disk.`;
}

/**
 * What an operator has to see to, each once: all services may tell of the same.
 * @param {{ warnings: OperatorWarning[] }[]} reports
 */
export const warningTexts = (reports) => [
  ...new Set(reports.flatMap(({ warnings }) => warnings.map(({ what, todo }) => `${what}. ${todo}`))),
];

/**
 * The health of one service.
 * @param {{ answers: boolean, mongodb?: { reachable: boolean } | null }} service
 * @returns {"healthy" | "silent" | "no database"}
 */
export function health({ answers, mongodb }) {
  if (!answers) return "silent";
  return mongodb && !mongodb.reachable ? "no database" : "healthy";
}

/**
 * @typedef {object} Minute
 * @property {number} timestamp
 * @property {number} slowest ms, of the reads that succeeded
 * @property {number} failed
 * @property {number} count
 */

/**
 * The reads of each minute.
 * @param {Read[]} reads
 * @returns {Minute[]}
 */
export function readsByMinute(reads) {
  /** @type {Map<number, Minute>} */
  const minutes = new Map();
  for (const { timestamp, latency_ms: took } of reads) {
    const start = Math.floor(timestamp / 60) * 60;
    const minute = minutes.get(start) ?? { timestamp: start, slowest: 0, failed: 0, count: 0 };
    minute.count += 1;
    if (took === null) minute.failed += 1;
    else minute.slowest = Math.max(minute.slowest, took);
    minutes.set(start, minute);
  }
  return [...minutes.values()];
}

/**
 * All reads in one sentence.
 * @param {Read[]} reads
 */
export function readsText(reads) {
  const took = reads.flatMap((read) => read.latency_ms ?? []).sort((shorter, longer) => shorter - longer);
  const median = took.length ? took[Math.floor(took.length / 2)] : "–";
  const failed = reads.length - took.length;
  return `${reads.length} reads: median ${median} ms, slowest ${took.at(-1) ?? "–"} ms, ${failed} failed`;
}

/**
 * The shards by name, each with its percentage of all detections.
 * @param {ShardReport[]} shards
 */
export function shardShares(shards) {
  const sum = shards.reduce((total, shard) => total + shard.documents, 0);
  return [...shards]
    .sort((shard, other) => compare(shard.name, other.name))
    .map((shard) => ({ ...shard, percent: sum ? (shard.documents / sum) * 100 : 0 }));
}

/**
 * How long the disk lasts, in words; "" where no server tells.
 * @param {StorageReport | null} storage
 */
export function storageText(storage) {
  if (!storage) return "";
  const free = `${sizeText(storage.free_bytes)} free`;
  const { detection_bytes: each, sealed_bytes: sealed, detections_a_day: aDay, days_left: left } = storage;
  if (each === null || aDay === null) return `${free}; for how long is not known yet`;
  const ofSealed = sealed === null ? "" : `, ${sealed.toFixed(1)} once sealed`;
  const growth = `${Math.round(aDay).toLocaleString()} detections a day, ${each.toFixed(0)} bytes each${ofSealed}`;
  if (left === null) return `${free}: enough for the ${storage.retention_days} days that are kept, at ${growth}`;
  const days = `${Math.floor(left).toLocaleString()} days`;
  if (!storage.low) return `${free}: full in ${days}, at ${growth}`;
  return `The disk is full in ${days}: make room, or take a larger one. ${free}, ${growth}`;
}

/**
 * When the last backup was made, where a schedule makes them; "" where none does.
 * @param {BackupReport | null} backup
 * @param {number} now
 */
export function backupText(backup, now) {
  if (!backup?.scheduled) return "";
  const { finished_at: finished, failed, late } = backup;
  const last = finished === null ? "There is no backup yet" : `Last backup: ${duration(now - finished)} ago`;
  if (!failed) return late ? `${last}: look whether its schedule runs` : last;
  return `${last}; the next one failed: backup.json, beside the data, says why`;
}
