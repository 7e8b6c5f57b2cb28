// System's table of services: health, latency, spool, memory.
/** @import { Memory } from "../../rules/system/memory_use.js" */
import { $, el, keyed, setAttribute, setText } from "../../page/dom.js";
import { memoryText } from "../../rules/system/memory_use.js";
import { health, pastText } from "../../rules/system/system_state.js";
import { clock } from "../../rules/words.js";
import { createMeter, updateMeter } from "./meter.js";

/**
 * The gateway and the monitoring service tell less than the ingest services.
 * @typedef {object} Row
 * @property {string} name
 * @property {boolean} answers
 * @property {number} seen_at
 * @property {number} [since]
 * @property {number} [latency_ms]
 * @property {number | null} [queued]
 * @property {Memory | null} [memory]
 * @property {DatabaseHealth | null} [mongodb]
 */

/**
 * @param {SystemReport} report
 * @param {boolean} isPast nobody knows how it is now
 */
export function drawServices({ services, monitoring, circuits, now }, isPast) {
  const states = [circuits.ingest.state, circuits.reads.state];
  /** @type {Row[]} */
  const rows = [
    { name: "gateway", answers: states.some((state) => state !== "unknown"), seen_at: now },
    ...services,
    { name: "monitoring", answers: true, seen_at: now, memory: monitoring.memory },
  ];
  const body = $("services", HTMLTableElement).tBodies[0];
  keyed(body, rows, (row) => row.name, createRow, (node, row) => updateRow(node, row, isPast));
}

function createRow() {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }),
    el("td", {}, el("span", { class: "state" }), el("span", { class: "quiet" })),
    el("td", { class: "number" }),
    el("td", { class: "number" }),
    el("td", {}, el("span"), createMeter()),
  );
}

/**
 * @param {Element} node
 * @param {Row} row
 * @param {boolean} isPast
 */
function updateRow(node, row, isPast) {
  const [name, healthCell, latency, queued, memory] = node.children;
  const [state, since] = healthCell.children;
  const itsHealth = health(row);
  setText(name, row.name);
  setText(state, isPast ? pastText(itsHealth) : itsHealth);
  const kind = itsHealth === "healthy" ? "well" : "ill";
  setAttribute(state, "data-state", isPast ? null : kind);
  setText(since, sinceText(itsHealth, row));
  setText(latency, latencyText(row));
  setText(queued, Number.isFinite(row.queued) ? (row.queued ?? 0).toLocaleString() : "–");
  setAttribute(queued, "class", `number${row.queued ? " warn" : ""}`);
  const [text, meter] = memory.children;
  setText(text, memoryText(row.memory));
  if (meter instanceof HTMLElement) updateMeter(meter, row.memory);
}

/**
 * @param {ReturnType<typeof health>} state
 * @param {Row} row
 */
function sinceText(state, { since, seen_at: seenAt }) {
  if (state === "silent") return ` since ${clock(since ?? seenAt)}`;
  return state === "healthy" && since ? ` since ${clock(since, { seconds: false })}` : "";
}

/** @param {Row} row */
function latencyText({ latency_ms: took, mongodb }) {
  if (!Number.isFinite(took)) return "–";
  const ofDatabase = mongodb?.latency_ms ?? null;
  const database = ofDatabase === null ? "" : ` (database ${ofDatabase.toFixed(1)})`;
  return `${took?.toFixed(1)} ms${database}`;
}
