// System: is it healthy? The circuit, the services, the database, and the last hour.
import { $, el, keyed, setAttribute, setText } from "./dom.js";
import { bars } from "./chart.js";
import { tell } from "./shell.js";
import { Source } from "./source.js";
import { clock, compare, duration, timeElement } from "./words.js";

const HOUR = 3600;
const LATENCY_STEP = 60;

const system = new Source("/monitoring/api/system", 5, draw);
const database = new Source("/monitoring/api/system/database", 30, draw);

const CIRCUIT = {
  closed: ["Closed", "Every ingest service that was seen answers."],
  "half-open": [
    "Half-open",
    "Not every ingest service answers; the gateway tries the missing one again every 20 seconds.",
  ],
  open: [
    "Open",
    "No ingest service answers. The gateway lets one request through every 20 seconds to see whether one is back.",
  ],
  unknown: ["Unknown", "The gateway itself does not answer this service."],
};

const megabytes = (bytes) => `${(bytes / 1048576).toFixed(0)} MiB`;
const sizeText = (bytes) =>
  bytes >= 1048576 ? `${(bytes / 1048576).toFixed(1)} MiB` : `${Math.ceil(bytes / 1024)} KiB`;

function draw() {
  tell(system);
  const said = system.data;
  $("skeleton").hidden = Boolean(said) || Boolean(system.failure);
  $("board").hidden = !said;
  if (!said) return;
  drawCircuit(said);
  drawServices(said);
  drawLatency(said);
  drawDatabase();
}

function drawCircuit({ circuit, services }) {
  const [name, text] = CIRCUIT[circuit.state];
  setText($("circuit"), name);
  setAttribute($("circuit-card"), "data-state", circuit.state);
  setText($("circuit-text"), text);
  $("circuit-since").replaceChildren(
    "since ",
    timeElement(circuit.since),
    ` (${duration(system.now() - circuit.since)})`,
  );
  const queued = services.reduce((sum, one) => sum + (one.queued ?? 0), 0);
  const ill = services.filter((one) => !one.answers || !one.mongodb?.reachable).length;
  const verdict =
    circuit.state === "closed" && !ill && !queued
      ? "Everything is healthy"
      : circuit.state === "closed"
        ? ill
          ? `${ill} of ${services.length} services cannot reach the database`
          : `${queued.toLocaleString()} detections wait to be stored`
        : circuit.state === "half-open"
          ? "Works, but a service is missing"
          : "Detections are not taken in";
  setText($("summary"), verdict);
}

const meter = (used, limit) => el("span", { class: "meter" }, el("span", {}));

function drawServices({ services, monitoring, circuit, now }) {
  const rows = [
    { name: "gateway", answers: circuit.state !== "unknown", seen: now },
    ...services.map((one) => ({ ...one, seen: one.seen_at })),
    { name: "monitoring", answers: true, seen: now, memory: monitoring.memory },
  ];
  keyed(
    $("services").tBodies[0],
    rows,
    (one) => one.name,
    () =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }),
        el("td", {}, el("span", { class: "state" }), el("span", { class: "quiet" })),
        el("td", { class: "number" }),
        el("td", { class: "number" }),
        el("td", {}, el("span"), meter()),
      ),
    (row, one) => {
      const [name, health, latency, queued, memory] = row.children;
      const state = !one.answers
        ? "silent"
        : one.mongodb && !one.mongodb.reachable
          ? "no database"
          : "healthy";
      setText(name, one.name);
      setText(health.firstChild, state);
      setAttribute(health.firstChild, "data-state", state === "healthy" ? "well" : "ill");
      setText(
        health.lastChild,
        state === "silent"
          ? ` since ${clock(one.since ?? one.seen)}`
          : state === "healthy" && one.since
            ? ` since ${clock(one.since, { seconds: false })}`
            : "",
      );
      setText(
        latency,
        Number.isFinite(one.latency_ms)
          ? `${one.latency_ms.toFixed(1)} ms${one.mongodb?.latency_ms !== undefined && one.mongodb?.latency_ms !== null ? ` (database ${one.mongodb.latency_ms.toFixed(1)})` : ""}`
          : "–",
      );
      setText(queued, Number.isFinite(one.queued) ? one.queued.toLocaleString() : "–");
      setAttribute(queued, "class", `number${one.queued ? " warn" : ""}`);
      const used = one.memory?.used_bytes,
        limit = one.memory?.limit_bytes;
      setText(
        memory.firstChild,
        used
          ? limit
            ? `${megabytes(used)} of ${megabytes(limit)}`
            : `${megabytes(used)}, no limit`
          : "–",
      );
      memory.lastChild.hidden = !limit;
      if (limit)
        memory.lastChild.firstChild.style.width = `${Math.min(100, (used / limit) * 100)}%`;
      if (limit)
        setAttribute(memory.lastChild, "class", `meter${used / limit > 0.9 ? " full" : ""}`);
    },
  );
}

// The slowest read of each minute, as this service saw them; a failed one fills its minute.
function drawLatency({ reads, now }) {
  const minutes = new Map();
  for (const { timestamp, latency_ms: took } of reads) {
    const minute = Math.floor(timestamp / LATENCY_STEP) * LATENCY_STEP;
    const known = minutes.get(minute) ?? { timestamp: minute, value: 0, failed: 0, count: 0 };
    known.count += 1;
    if (took === null) known.failed += 1;
    else known.value = Math.max(known.value, took);
    minutes.set(minute, known);
  }
  const values = [...minutes.values()].map((one) => ({
    timestamp: one.timestamp,
    value: one.failed ? null : one.value,
    title: `${clock(one.timestamp, { seconds: false })}: ${one.failed ? `${one.failed} of ${one.count} reads failed` : `slowest of ${one.count} reads ${one.value} ms`}`,
  }));
  const failed = reads.filter((one) => one.latency_ms === null).length;
  const good = reads
    .filter((one) => one.latency_ms !== null)
    .map((one) => one.latency_ms)
    .sort((one, other) => one - other);
  const text = `${reads.length} reads: median ${good.length ? good[Math.floor(good.length / 2)] : "–"} ms, slowest ${good.at(-1) ?? "–"} ms, ${failed} failed`;
  setText($("latency-text"), text);
  bars($("latency"), values, {
    from: now - HOUR,
    to: now,
    step: LATENCY_STEP,
    unit: "ms",
    label: text,
  });
}

function drawDatabase() {
  const said = database.data;
  setText(
    $("database-state"),
    database.failure
      ? `This cannot be read since ${clock(database.failingSince)}${database.takenAt ? `: as of ${clock(database.takenAt)}` : ""}.`
      : said
        ? ""
        : "Loading…",
  );
  $("database-state").hidden = !$("database-state").textContent;
  if (!said && database.failure) setText($("rate-text"), "This cannot be read now.");
  if (!said) return;
  const shards = [...said.shards].sort((one, other) => compare(one.name, other.name));
  const sum = shards.reduce((total, one) => total + one.documents, 0);
  setText(
    $("documents"),
    `${sum.toLocaleString()} detections on ${shards.length} ${shards.length === 1 ? "replica set" : "shards"}`,
  );
  keyed(
    $("shards"),
    shards,
    (one) => one.name,
    () => el("li", {}, el("span"), el("span", { class: "amount" }), el("span", { class: "bar" })),
    (row, one) => {
      const share = sum ? (one.documents / sum) * 100 : 0;
      setText(row.children[0], one.name);
      setText(
        row.children[1],
        `${one.documents.toLocaleString()} (${share.toFixed(0)} %), ${sizeText(one.bytes)}`,
      );
      row.children[2].style.width = `${Math.max(0.5, share)}%`;
    },
  );
  const values = said.minutes.map((one) => ({
    timestamp: one.timestamp,
    value: one.count,
    title: `${clock(one.timestamp, { seconds: false })}: ${one.count} detections`,
  }));
  const total = values.reduce((all, one) => all + one.value, 0);
  const text = `${total.toLocaleString()} detections in the last hour, ${(total / HOUR).toFixed(1)} a second`;
  setText($("rate-text"), text);
  bars($("rate"), values, {
    from: said.as_of - HOUR,
    to: said.as_of,
    step: 60,
    unit: "/min",
    label: text,
  });
}

system.start();
database.start();
