// What the health monitor's report says, in a word for each thing. Pure.
import { compare } from "./words.js";

/**
 * What the whole system's state is.
 * @param {SystemReport} report
 */
export function verdict({ circuit, services }) {
  if (circuit.state === "half-open") return "Works, but a service is missing";
  if (circuit.state !== "closed") return "Detections are not taken in";
  const ill = services.filter((one) => !one.answers || !one.mongodb?.reachable).length;
  if (ill) return `${ill} of ${services.length} services cannot reach the database`;
  const queued = services.reduce((sum, one) => sum + (one.queued ?? 0), 0);
  if (queued) return `${queued.toLocaleString()} detections wait to be stored`;
  return "Everything is healthy";
}

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
  const took = reads.flatMap((one) => one.latency_ms ?? []).sort((one, other) => one - other);
  const median = took.length ? took[Math.floor(took.length / 2)] : "–";
  const failed = reads.length - took.length;
  return `${reads.length} reads: median ${median} ms, slowest ${took.at(-1) ?? "–"} ms, ${failed} failed`;
}

/**
 * The shards by name, each with its percentage of all detections.
 * @param {ShardReport[]} shards
 */
export function shardShares(shards) {
  const sum = shards.reduce((total, one) => total + one.documents, 0);
  return [...shards]
    .sort((one, other) => compare(one.name, other.name))
    .map((one) => ({ ...one, percent: sum ? (one.documents / sum) * 100 : 0 }));
}
