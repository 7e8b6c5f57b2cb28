// System: is it healthy? The circuit, the services, the database, and the last hour.
import { drawBars } from "../drawings/chart.js";
import { $, el, keyed, setAttribute, setText, setWidth } from "../page/dom.js";
import { showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { drawOwntracks } from "../panels/system/owntracks_table.js";
import { drawServices } from "../panels/system/services_table.js";
import { sizeText } from "../rules/system/memory_use.js";
import {
  backupText,
  CIRCUIT_WORDS,
  circuitMeans,
  pastText,
  readsByMinute,
  readsText,
  setAsideText,
  shardShares,
  storageText,
  warningTexts,
} from "../rules/system/system_state.js";
import { clock, duration, verdictText } from "../rules/words.js";

const HOUR = 3600;
const MINUTE = 60;

/** @type {Source<SystemReport>} */
const system = new Source("/monitoring/api/system", 5, draw, (answer) =>
  Boolean(answer?.circuits?.ingest && answer.circuits.reads && answer.monitoring) &&
  [answer.services, answer.reads].every(Array.isArray),
);
/** @type {Source<DatabaseReport>} */
const database = new Source("/monitoring/api/system/database", 30, draw, (answer) =>
  [answer?.shards, answer?.minutes].every(Array.isArray),
);

function draw() {
  showFreshness(system);
  const report = system.data;
  $("skeleton").hidden = Boolean(report) || Boolean(system.failure);
  $("board").hidden = !report;
  if (!report) return;
  drawVerdict(report.verdict);
  drawCircuit("ingest", report);
  drawCircuit("reads", report);
  drawWarnings(report);
  drawSetAside(report);
  drawServices(report, Boolean(system.failure));
  drawOwntracks(report.services);
  drawLatency(report);
  drawDatabase();
}

/** @param {Verdict | null} verdict */
function drawVerdict(verdict) {
  const says = verdict ? verdictText(verdict) : "Nothing was known yet";
  setText($("summary"), system.failure ? `Waymark said “${says}”` : says);
  setText($("kept"), verdict?.kept ?? ""); // apart, as it changes while the verdict does not
  $("kept").hidden = !verdict?.kept;
}

/**
 * @param {"ingest" | "reads"} circuit
 * @param {SystemReport} report
 */
function drawCircuit(circuit, { circuits, services }) {
  const { state, since } = circuits[circuit];
  const { says, sign } = circuitMeans(circuit, state, services);
  const [name, text] = CIRCUIT_WORDS[state];
  const isPast = Boolean(system.failure);
  setText($(`${circuit}-state`), isPast ? pastText(name) : says);
  setText($(`${circuit}-text`), isPast ? "How it is now, nobody can tell." : `${name}: ${text}`);
  setAttribute($(`${circuit}-circuit`), "data-state", sign);
  const time = updateTime(el("time"), since);
  const lasted = isPast ? `, at ${clock(system.takenAt)}` : ` (${duration(system.now() - since)})`;
  $(`${circuit}-since`).replaceChildren("since ", time, lasted);
}

/** @param {SystemReport} report */
function drawWarnings({ services, warnings }) {
  const texts = warningTexts([{ warnings }, ...services]);
  $("warnings").hidden = !texts.length;
  keyed($("warnings"), texts, (text) => text, () => el("p"), setText);
}

/** @param {SystemReport} report */
function drawSetAside({ services }) {
  const text = setAsideText(services);
  $("set-aside").hidden = !text;
  setText($("set-aside"), text);
}

/**
 * The slowest read of each minute, as this service saw them; a failed one fills its minute.
 * @param {SystemReport} report
 */
function drawLatency({ reads, now }) {
  const bars = readsByMinute(reads).map(({ timestamp, slowest, failed, count }) => {
    const what = failed
      ? `${failed} of ${count} reads failed`
      : `slowest of ${count} reads ${slowest} ms`;
    const title = `${clock(timestamp, { seconds: false })}: ${what}`;
    return { timestamp, value: failed ? null : slowest, title };
  });
  const label = readsText(reads);
  setText($("latency-text"), label);
  drawBars($("latency"), bars, { from: now - HOUR, to: now, step: MINUTE, unit: "ms", label });
}

function drawDatabase() {
  const report = database.data;
  const state = databaseState();
  setText($("database-state"), state);
  $("database-state").hidden = !state;
  if (!report && database.failure) setText($("rate-text"), "This cannot be read now.");
  if (!report) return;
  drawShards(report.shards);
  drawStorage(report.storage);
  drawBackup(report);
  drawRate(report);
}

/** What is wrong with the database's data; "" when nothing is. */
function databaseState() {
  if (!database.failure) return database.data ? "" : "Loading…";
  const asOf = database.takenAt ? `: as of ${clock(database.takenAt)}` : "";
  return `This cannot be read since ${clock(database.failingSince)}${asOf}.`;
}

/** @param {ShardReport[]} shards */
function drawShards(shards) {
  const sum = shards.reduce((total, shard) => total + shard.documents, 0).toLocaleString();
  const sealed = shards.reduce((total, shard) => total + shard.sealed, 0);
  const kind = shards.length === 1 ? "replica set" : "shards";
  const ofThem = sealed ? `, ${sealed.toLocaleString()} of them sealed` : "";
  setText($("documents"), `${sum} detections on ${shards.length} ${kind}${ofThem}`);
  keyed(
    $("shards"),
    shardShares(shards),
    (shard) => shard.name,
    () => el("li", {}, el("span"), el("span", { class: "amount" }), el("span", { class: "bar" })),
    (row, { name, documents, percent, bytes }) => {
      const [title, amount, bar] = row.children;
      const share = `${documents.toLocaleString()} (${percent.toFixed(0)} %)`;
      setText(title, name);
      setText(amount, `${share}, ${sizeText(bytes)}`);
      setWidth(bar, Math.max(0.5, percent));
    },
  );
}

/** @param {StorageReport | null} storage */
function drawStorage(storage) {
  const text = storageText(storage);
  $("storage").hidden = !text;
  $("storage").className = storage?.low ? "warning" : "quiet";
  setText($("storage"), text);
}

/** @param {DatabaseReport} report */
function drawBackup({ backup, as_of: now }) {
  const text = backupText(backup, now);
  $("backup").hidden = !text;
  $("backup").className = backup?.late || backup?.failed ? "warning" : "quiet";
  setText($("backup"), text);
}

/** @param {DatabaseReport} report */
function drawRate({ minutes, as_of: to }) {
  const bars = minutes.map(({ timestamp, count }) => {
    const title = `${clock(timestamp, { seconds: false })}: ${count} detections`;
    return { timestamp, value: count, title };
  });
  const total = minutes.reduce((sum, minute) => sum + minute.count, 0);
  const rate = (total / HOUR).toFixed(1);
  const label = `${total.toLocaleString()} detections in the last hour, ${rate} a second`;
  setText($("rate-text"), label);
  drawBars($("rate"), bars, { from: to - HOUR, to, step: MINUTE, unit: "/min", label });
}

system.start();
database.start();
