// Replay: where was somebody? A trail, a scrubber, and the time spent in each spot.
import { $, adopt, el, go, keyed, parameter, setAttribute, setText, svg } from "./dom.js";
import { Plan } from "./plan.js";
import { API, DOWNLOADS, tell } from "./shell.js";
import { Source, ask } from "./source.js";
import {
  clock,
  compare,
  duration,
  isUnknown,
  levelText,
  placeText,
  spotText,
  updateTime,
} from "./words.js";
import { dwell, visitAt, visits } from "./visits.js";

const PAGE = 1000; // detections in one answer of the API
const PAGES = 30; // at most: 33 hours of one detection every 4 s
const RANGES = { "15 minutes": 900, hour: 3600, "8 hours": 8 * 3600, "24 hours": 86400 };

const staff = new Source("/monitoring/api/staff", 30, drawNames);
const beacons = new Source("/monitoring/api/beacons", 60, () => draw());
const plan = new Plan($("plan"));
let list = []; // visits, oldest first
let range = { from: 0, to: 0 };
let at = 0;
let playing = 0; // performance.now() of the last step, 0 when paused
let asked = 0;

const toInput = (timestamp) => {
  const moment = new Date(timestamp * 1000);
  return new Date(timestamp * 1000 - moment.getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, 19);
};
const fromInput = (node) => Math.floor(new Date(node.value).getTime() / 1000);

function drawNames() {
  tell(staff);
  const ids = (staff.data?.data ?? []).map((one) => String(one.staff_id)).sort(compare);
  keyed(
    $("names"),
    ids,
    (id) => id,
    (id) => el("option", { value: id }, `Staff ${id}`),
    () => {},
  );
}

function setRange(from, to) {
  $("from").value = toInput(from);
  $("to").value = toInput(to);
}

// What the address says; without a range, the last hour.
function fromAddress() {
  const now = Math.floor(Date.now() / 1000);
  const to = Number(parameter("to")) || now,
    from = Number(parameter("from")) || to - 3600;
  $("person").value = parameter("person");
  setRange(from, to);
  load();
}

async function load() {
  const id = $("person").value.trim();
  range = { from: fromInput($("from")), to: fromInput($("to")) };
  const wrong = !id
    ? "Choose a person."
    : !(range.from < range.to)
      ? "The end must be after the beginning."
      : "";
  pause();
  list = [];
  const mine = (asked += 1);
  drawDownloads(wrong ? "" : id);
  if (wrong) return drawState(wrong);
  go({ person: id, from: range.from, to: range.to }, { replace: parameter("person") === id });
  const url = `${API}/staff/${encodeURIComponent(id)}/detections?from=${range.from}&to=${range.to}&limit=${PAGE}`;
  const found = [];
  let truncated = false;
  try {
    for (let page = 0, next = ""; page < PAGES && (page === 0 || next); page += 1) {
      drawState(found.length ? `Reading… ${found.length.toLocaleString()} detections` : "Reading…");
      const { body } = await ask(url + (next ? `&cursor=${encodeURIComponent(next)}` : ""));
      if (mine !== asked) return; // another range was chosen meanwhile
      if (body === null) throw new Error("Waymark cannot read this now.");
      found.push(...body.data);
      next = body.next;
      truncated = Boolean(next);
    }
  } catch (error) {
    if (mine === asked)
      drawState(`${error.message} The history could not be read.`, { retry: true });
    return;
  }
  list = visits(found);
  drawState(
    found.length
      ? ""
      : `Staff ${id} was not heard between ${clock(range.from)} and ${clock(range.to)}.`,
  );
  if (truncated)
    drawNote(
      `Only the newest ${found.length.toLocaleString()} detections are shown: choose a shorter range for the rest.`,
    );
  if (truncated && list.length) range.from = list[0].from;
  const wanted = Number(parameter("at"));
  at = wanted >= range.from && wanted <= range.to ? wanted : (list.at(-1)?.from ?? range.to);
  drawRibbon();
  drawDwell();
  draw();
}

function drawState(text, { retry = false } = {}) {
  setText($("state"), text);
  $("state").hidden = !text;
  $("retry").hidden = !retry;
  $("player").hidden = Boolean(text) || list.length === 0;
  drawNote("");
  setAttribute(document.body, "data-replay", text ? "none" : "shown");
}

function drawNote(text) {
  setText($("note"), text);
  $("note").hidden = !text;
}

function drawDownloads(id) {
  for (const [name, ending] of [
    ["csv", "csv"],
    ["geojson", "geojson"],
  ]) {
    const link = $(`download-${name}`);
    setAttribute(link, "aria-disabled", id ? null : "true");
    setAttribute(
      link,
      "href",
      id
        ? `${DOWNLOADS}/staff/${encodeURIComponent(id)}/detections?from=${range.from}&to=${range.to}&format=${name}`
        : null,
    );
    setAttribute(link, "download", id ? `staff-${id}-${range.from}-${range.to}.${ending}` : null);
  }
}

function draw() {
  if (!list.length) return;
  const found = visitAt(list, at) ?? { visit: list[0], index: 0, there: false };
  const { visit, index, there } = found;
  const spots = levelSpots(visit);
  const key = keyOf(visit, spots);
  const id = parameter("person");
  const here = {
    id,
    spotKey: key,
    fresh: there ? "now" : "stale",
    order: 0,
    title: placeText(visit),
    picked: false,
  };
  const path = list
    .slice(Math.max(0, index - 40), index + 1)
    .filter((one) => one.level === visit.level)
    .map((one) => keyOf(one, spots));
  plan.show(spots, [here], { trail: path, label: `Plan of ${levelText(visit.level)}` });
  const before = at < list[0].from;
  setText(
    $("place"),
    before ? `Not heard yet` : there ? placeText(visit) : `Not heard; last ${placeText(visit)}`,
  );
  setText(
    $("stay"),
    before
      ? ""
      : `${there ? "there" : "was there"} ${clock(visit.from)} – ${clock(visit.to)}, ${duration(visit.to - visit.from)}`,
  );
  updateTime($("moment"), at, clock(at));
  const scrubber = $("scrubber");
  if (scrubber.min !== String(range.from))
    Object.assign(scrubber, { min: range.from, max: range.to });
  scrubber.max = range.to;
  scrubber.value = at;
  setAttribute(scrubber, "aria-valuetext", `${clock(at)}: ${$("place").textContent}`);
  $("needle").style.left = `${((at - range.from) / (range.to - range.from)) * 100}%`;
}

const levelSpots = (visit) => {
  const known = (beacons.data?.data ?? [])
    .filter((beacon) => beacon.level === visit.level && Number.isFinite(beacon.x))
    .map((beacon) => ({ ...beacon, key: beacon.mac }));
  const lost = list.filter(
    (one) =>
      one.level === visit.level &&
      !known.some((spot) => spot.key === one.mac || spot.location === one.location),
  );
  const names = new Map(
    lost.map((one) => [
      spotText(one),
      { key: spotText(one), level: visit.level, location: spotText(one), x: null, y: null },
    ]),
  );
  return [...known, ...names.values()];
};

function keyOf(visit, spots) {
  const spot =
    spots.find((one) => one.key === visit.mac) ??
    spots.find((one) => one.location === visit.location);
  return spot?.key ?? spotText(visit);
}

// One block a visit, in turns light and dark; nothing where nobody knows.
function drawRibbon() {
  const span = range.to - range.from;
  const blocks = list.map((visit, index) =>
    svg(
      "rect",
      {
        x: ((visit.from - range.from) / span) * 1000,
        width: Math.max(0.6, ((visit.to - visit.from) / span) * 1000),
        y: 0,
        height: 10,
        class: `block ${isUnknown(visit.level) ? "unknown" : index % 2 ? "odd" : "even"}`,
      },
      svg("title", {}, `${clock(visit.from)} – ${clock(visit.to)}: ${placeText(visit)}`),
    ),
  );
  $("ribbon").replaceChildren(...blocks);
  setText($("range-from"), clock(range.from));
  setText($("range-to"), clock(range.to));
}

function drawDwell() {
  const spots = dwell(list);
  const most = spots[0]?.seconds || 1;
  setText(
    $("dwell-summary"),
    `${spots.length} ${spots.length === 1 ? "location" : "locations"}, heard for ${duration(spots.reduce((sum, spot) => sum + spot.seconds, 0))} of ${duration(range.to - range.from)}`,
  );
  keyed(
    $("dwell"),
    spots,
    (spot) => spot.key,
    () => el("li", {}, el("span"), el("span", { class: "amount" }), el("span", { class: "bar" })),
    (row, spot) => {
      setText(row.children[0], placeText(spot));
      setText(
        row.children[1],
        `${duration(spot.seconds)}${spot.visits > 1 ? `, ${spot.visits} visits` : ""}`,
      );
      row.children[2].style.width = `${Math.max(0.5, (spot.seconds / most) * 100)}%`;
    },
  );
}

function pause() {
  playing = 0;
  setText($("play"), "▶ Play");
  if (list.length) go({ at: Math.round(at) }, { replace: true });
}

function play() {
  if (at >= range.to) at = range.from;
  playing = performance.now();
  setText($("play"), "❚❚ Pause");
  requestAnimationFrame(step);
}

function step(time) {
  if (!playing) return;
  at = Math.min(range.to, at + (Math.max(0, time - playing) / 1000) * Number($("speed").value));
  playing = Math.max(playing, time);
  draw();
  if (at >= range.to) pause();
  else requestAnimationFrame(step);
}

for (const [name, seconds] of Object.entries(RANGES)) {
  $("ranges").append(
    el(
      "button",
      {
        type: "button",
        onclick: () => {
          const now = Math.floor(staff.now());
          setRange(now - seconds, now);
          load();
        },
      },
      `Last ${name}`,
    ),
  );
}
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  load();
});
$("retry").addEventListener("click", load);
$("play").addEventListener("click", () => (playing ? pause() : play()));
$("scrubber").addEventListener("input", (event) => {
  at = Number(event.target.value);
  draw();
});
$("scrubber").addEventListener("change", () => playing || go({ at }, { replace: true }));
window.addEventListener("popstate", fromAddress);
staff.start();
beacons.start();
adopt($("person"), "person");
fromAddress();
