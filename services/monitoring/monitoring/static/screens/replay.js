// Replay: where was somebody? A trail, a time line, and the time spent in each spot.
/** @import { Figure } from "../drawings/marker_layout.js" */
/** @import { Range } from "../panels/timeline.js" */
/** @import { Visit } from "../rules/visits.js" */
import { Plan } from "../drawings/plan.js";
import { adopt, changeAddress, parameter } from "../page/address.js";
import { $, buttonById, el, inputById, selectById, setAttribute, setText } from "../page/dom.js";
import { readHistory } from "../page/history.js";
import { RequestFailed } from "../page/request.js";
import { showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { Playback } from "../panels/playback.js";
import {
  drawDownloads,
  drawNames,
  formProblem,
  readForm,
  setRange,
} from "../panels/replay_form.js";
import { drawTimeSpent } from "../panels/time_spent.js";
import { drawRibbon, drawScrubber } from "../panels/timeline.js";
import { levelSpots, spotKey } from "../rules/replay_spots.js";
import { visitAt, visits as visitsOf } from "../rules/visits.js";
import { clock, duration, levelText, placeText } from "../rules/words.js";

const RANGES = { "15 minutes": 900, hour: 3600, "8 hours": 8 * 3600, "24 hours": 86400 };
const DEFAULT_SECONDS = 3600;
const TRAIL_VISITS = 40; // before the one that is shown

/** @type {Source<StaffAnswer>} */
const staff = new Source("/monitoring/api/staff", 30, () => {
  showFreshness(staff);
  drawNames(staff.data?.data ?? []);
});
/** @type {Source<BeaconsAnswer>} */
const beacons = new Source("/monitoring/api/beacons", 60, draw);
const plan = new Plan($("plan"));
const playback = new Playback(buttonById("play"), advance);
const person = inputById("person"),
  scrubber = inputById("scrubber");

/** @type {Visit[]} */
let visits = []; // the oldest first
/** @type {Range} */
let range = { from: 0, to: 0 };
let at = 0; // unix seconds, of what is shown
let loads = 0;

/** Shows what the address says; without a range, the last hour of the server's clock. */
function showAddress() {
  const to = Number(parameter("to")) || Math.floor(staff.now()),
    from = Number(parameter("from")) || to - DEFAULT_SECONDS;
  person.value = parameter("person");
  setRange({ from, to });
  load();
}

/** Reads and shows what the form says. */
async function load() {
  const form = readForm();
  const { id } = form;
  range = form.range;
  pause();
  visits = [];
  loads += 1;
  const thisLoad = loads;
  const wrong = formProblem(id, range);
  drawDownloads(wrong ? "" : id, range);
  if (wrong) return drawState(wrong);
  changeAddress(
    { person: id, from: range.from, to: range.to },
    { replace: parameter("person") === id },
  );
  try {
    const history = await readHistory(id, range, (count) => {
      const isWanted = thisLoad === loads; // else another range was chosen meanwhile
      if (isWanted) drawState(count ? `Reading… ${count.toLocaleString()} detections` : "Reading…");
      return isWanted;
    });
    if (history && thisLoad === loads) showHistory(id, history);
  } catch (error) {
    if (thisLoad !== loads) return;
    if (error instanceof RequestFailed && error.problem?.code === "not_found")
      return drawState(`Staff ${id} was never heard. Is the name right?`);
    const reason = error instanceof Error ? error.message : String(error);
    drawState(`${reason} The history could not be read.`, { retry: true });
  }
}

/**
 * @param {string} id
 * @param {{ detections: Detection[], truncated: boolean }} history
 */
function showHistory(id, { detections, truncated }) {
  visits = visitsOf(detections);
  const span = `between ${clock(range.from)} and ${clock(range.to)}`;
  drawState(detections.length ? "" : `Staff ${id} was not heard ${span}.`);
  if (truncated) {
    const count = detections.length.toLocaleString();
    drawNote(`Only the newest ${count} detections are shown: choose a shorter range for the rest.`);
    range.from = visits[0]?.from ?? range.from;
  }
  const wanted = Number(parameter("at"));
  const isInRange = wanted >= range.from && wanted <= range.to;
  at = isInRange ? wanted : (visits.at(-1)?.from ?? range.to);
  drawRibbon(visits, range);
  drawTimeSpent(visits, range.to - range.from);
  draw();
}

/**
 * @param {string} text "" when the history is shown
 * @param {{ retry?: boolean }} [options]
 */
function drawState(text, { retry = false } = {}) {
  setText($("state"), text);
  $("state").hidden = !text;
  $("retry").hidden = !retry;
  $("player").hidden = Boolean(text) || visits.length === 0;
  drawNote("");
  setAttribute(document.body, "data-replay", text ? "none" : "shown");
}

/** @param {string} text */
function drawNote(text) {
  setText($("note"), text);
  $("note").hidden = !text;
}

/** Draws the time `at`. */
function draw() {
  if (!visits.length) return;
  const { visit, index, there } = visitAt(visits, at) ?? {
    visit: visits[0],
    index: 0,
    there: false,
  };
  drawPlan(visit, index, there);
  const place = placeText(visit);
  const stay = `${clock(visit.from)} – ${clock(visit.to)}, ${duration(visit.to - visit.from)}`;
  const isBefore = at < visits[0].from;
  const placeNow = isBefore ? "Not heard yet" : there ? place : `Not heard; last ${place}`;
  setText($("place"), placeNow);
  setText($("stay"), isBefore ? "" : `${there ? "there" : "was there"} ${stay}`);
  updateTime($("moment"), at);
  drawScrubber(at, range, placeNow);
}

/**
 * @param {Visit} visit
 * @param {number} index
 * @param {boolean} there whether it lasts at that time
 */
function drawPlan(visit, index, there) {
  const spots = levelSpots(visit, visits, beacons.data?.data ?? []);
  const trail = visits
    .slice(Math.max(0, index - TRAIL_VISITS), index + 1)
    .filter((one) => one.level === visit.level)
    .map((one) => spotKey(one, spots));
  /** @type {Figure} */
  const here = {
    id: parameter("person"),
    spotKey: spotKey(visit, spots),
    fresh: there ? "now" : "stale",
    order: 0,
    title: placeText(visit),
    picked: false,
  };
  plan.show(spots, [here], { trail, label: `Plan of ${levelText(visit.level)}` });
}

function play() {
  if (at >= range.to) at = range.from;
  playback.play();
}

function pause() {
  playback.pause();
  if (visits.length) changeAddress({ at: Math.round(at) }, { replace: true });
}

/** @param {number} seconds */
function advance(seconds) {
  at = Math.min(range.to, at + seconds * Number(selectById("speed").value));
  draw();
  if (at < range.to) return true;
  pause();
  return false;
}

/** The first answer tells the server's time: the viewer's clock may be hours ahead. */
const clockKnown = staff.start().refresh();
for (const [name, seconds] of Object.entries(RANGES)) {
  const button = el("button", { type: "button" }, `Last ${name}`);
  button.addEventListener("click", async () => {
    await clockKnown;
    const now = Math.floor(staff.now());
    setRange({ from: now - seconds, to: now });
    load();
  });
  $("ranges").append(button);
}
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  load();
});
$("retry").addEventListener("click", load);
$("play").addEventListener("click", () => (playback.isPlaying ? pause() : play()));
scrubber.addEventListener("input", () => {
  at = Number(scrubber.value);
  draw();
});
scrubber.addEventListener("change", () => {
  if (!playback.isPlaying) changeAddress({ at }, { replace: true });
});
window.addEventListener("popstate", showAddress);
beacons.start();
if (!parameter("to")) await clockKnown;
adopt(person, "person"); // after the wait, in which somebody may type
showAddress();
