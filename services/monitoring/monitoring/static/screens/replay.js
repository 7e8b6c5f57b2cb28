// Replay: where was somebody? A trail, a time line, and the time spent in each spot.
/** @import { Figure } from "../drawings/marker_layout.js" */
/** @import { Range } from "../rules/histories/day_ranges.js" */
/** @import { Visit } from "../rules/histories/visits.js" */
import { Plan } from "../drawings/plan.js";
import { adopt, changeAddress, parameter } from "../page/address.js";
import { $, buttonById, el, inputById, selectById, setAttribute, setText } from "../page/dom.js";
import { callBy, names, readNames } from "../page/people.js";
import { RequestFailed } from "../page/request.js";
import { showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { setSeconds } from "../page/time_field.js";
import { Companions } from "../panels/histories/companions.js";
import { readAround, readHistory } from "../panels/histories/history.js";
import { Playback } from "../panels/histories/playback.js";
import { offerPrinting } from "../panels/histories/printed_visits.js";
import {
  drawDownloads,
  drawNames,
  formProblem,
  readForm,
  setRange,
  writePeople,
} from "../panels/histories/replay_form.js";
import { drawTimeSpent } from "../panels/histories/time_spent.js";
import { drawRibbon, drawScrubber } from "../panels/histories/timeline.js";
import { drawTeams, offerTeams } from "../panels/people/team_filter.js";
import { hourFrom, SHIFT_SECONDS, yesterday } from "../rules/histories/day_ranges.js";
import { levelSpots, spotKey } from "../rules/histories/replay_spots.js";
import { nextVisit, nextVisitOf, visitAt, visits as visitsOf } from "../rules/histories/visits.js";
import { clock, duration, levelText, placeText } from "../rules/words.js";

const DEFAULT_SECONDS = 3600;
/** @type {Record<string, (now: number) => Range>} */
const RANGES = {
  "Last 15 minutes": lastSeconds(900),
  "Last hour": lastSeconds(3600),
  "This shift": lastSeconds(SHIFT_SECONDS),
  Yesterday: yesterday,
};
const TRAIL_VISITS = 40; // before the one that is shown

/** @type {Source<StaffAnswer>} */
const staff = new Source("/monitoring/api/staff", 30, () => {
  showFreshness(staff);
  suggest();
});
/** @type {Source<BeaconsAnswer>} */
const beacons = new Source("/monitoring/api/beacons", 60, draw);
const plan = new Plan($("plan"));
const companions = new Companions();
const playback = new Playback(buttonById("play"), advance);
const person = inputById("person"),
  scrubber = inputById("scrubber");

/** @type {Visit[]} */
let visits = []; // the oldest first
/** @type {Range} */
let range = { from: 0, to: 0 };
let at = 0; // unix seconds, of what is shown
/** The visits just outside the range. @type {{ before?: Visit, after?: Visit }} */
let outside = {};
let loads = 0;

/**
 * @param {number} seconds
 * @returns {(now: number) => Range}
 */
function lastSeconds(seconds) {
  return (now) => ({ from: now - seconds, to: now });
}

/** Those to choose from: of a team, where one is chosen. */
function suggest() {
  drawTeams(names.teams);
  drawNames(staff.data?.data ?? [], parameter("team"));
}

/** Names whoever is suggested or shown, once they have other names. */
function nameAll() {
  suggest();
  draw();
}

/** Shows what the address says; without a range, the last hour of the server's clock. */
function showAddress() {
  const to = Number(parameter("to")) || Math.floor(staff.now()),
    from = Number(parameter("from")) || to - DEFAULT_SECONDS;
  writePeople("person", [parameter("person")]);
  writePeople("with", parameter("with").split(" ").filter(Boolean));
  show({ from, to });
}

/** @param {Range} wanted */
function show(wanted) {
  setRange(wanted);
  load();
}

/** Reads and shows what the form says. */
async function load() {
  const form = readForm();
  const { id, others, moment, question } = form;
  range = form.range;
  pause();
  visits = [];
  outside = {};
  if (!Number.isNaN(moment)) setRange(range);
  loads += 1;
  const thisLoad = loads;
  const wrong = formProblem(form);
  drawDownloads(wrong ? "" : id, range);
  drawWhom(wrong ? "" : id);
  if (wrong) drawState(wrong);
  if (question) drawChoices(question);
  if (wrong) return;
  if (names.of(id)) writePeople("person", [id]);
  if (others.some((other) => names.of(other))) writePeople("with", others);
  changeAddress(
    { person: id, with: others.join(" "), ...range, ...(!Number.isNaN(moment) && { at: moment }) },
    { replace: parameter("person") === id },
  );
  try {
    const history = await readHistory(id, range, (count) => {
      const isWanted = thisLoad === loads; // else another range was chosen meanwhile
      if (isWanted) drawState(count ? `Reading… ${count.toLocaleString()} detections` : "Reading…");
      return isWanted;
    });
    if (!history || thisLoad !== loads) return;
    const reading = companions.load(others, range, () => thisLoad === loads);
    showHistory(id, history);
    const { before, after } = await readAround(id, range);
    await reading;
    if (thisLoad !== loads) return;
    outside = { before: before && visitsOf([before])[0], after: after && visitsOf([after])[0] };
    if (!visits.length) drawOutside();
    draw();
  } catch (error) {
    if (thisLoad !== loads) return;
    if (error instanceof RequestFailed && error.problem?.code === "not_found")
      return drawState(`${names.called(id)} was never heard. Is the name right?`);
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
  drawState(detections.length ? "" : `${names.called(id)} was not heard ${span}.`);
  if (truncated) {
    const count = detections.length.toLocaleString();
    drawNote(`Only the newest ${count} detections are shown: choose a shorter range for the rest.`);
    range.from = visits[0]?.from ?? range.from;
  }
  const wanted = Number(parameter("at"));
  const isInRange = wanted >= range.from && wanted <= range.to;
  at = isInRange ? wanted : (visits.at(-1)?.from ?? range.to);
  drawRibbon(visits, range);
  drawTimeSpent(visits, range.to - range.from, (key) => goTo(nextVisitOf(visits, at, key)));
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
  $("outside").hidden = true;
  $("player").hidden = Boolean(text) || visits.length === 0;
  drawNote("");
  setAttribute(document.body, "data-replay", text ? "none" : "shown");
}

/** Nothing was heard in the range: tells what was before and after it, and leads there. */
function drawOutside() {
  const { before, after } = outside;
  const says = [
    before ? `Last before: ${clock(before.to)}, ${placeText(before)}.` : "Never heard before.",
    after ? `Next after: ${clock(after.from)}, ${placeText(after)}.` : "Not heard since.",
  ];
  setText($("state"), `${$("state").textContent} ${says.join(" ")}`);
  const neighbours = [before, after].filter((visit) => visit !== undefined);
  const buttons = neighbours.map(({ from }) => {
    const show = () => {
      setSeconds("at", from);
      load();
    };
    return el("button", { type: "button", onclick: show }, `Go to ${clock(from)}`);
  });
  $("outside").replaceChildren(...buttons);
  $("outside").hidden = !buttons.length;
}

/** @param {string} id "" for nobody */
function drawWhom(id) {
  if (id) return callBy($("whom"), id);
  $("whom").removeAttribute("data-called");
  setText($("whom"), "…");
}

/** @param {import("../panels/histories/replay_form.js").Question} question */
function drawChoices({ choices, choose }) {
  const buttons = choices.map((id) => {
    const show = () => {
      choose(id);
      load();
    };
    const person = names.of(id);
    const who = [person?.name ?? "", `staff ${id}`, person?.team].filter(Boolean).join(", ");
    return el("button", { type: "button", onclick: show }, who);
  });
  $("outside").replaceChildren(...buttons);
  $("outside").hidden = false;
}

/** @param {string} text */
function drawNote(text) {
  setText($("note"), text);
  $("note").hidden = !text;
}

/** Draws the time `at`. */
function draw() {
  if (!visits.length) return;
  const current = visitAt(visits, at);
  const there = current?.there ?? false;
  const last = current?.visit ?? outside.before;
  const next = there ? undefined : (nextVisit(visits, at, false) ?? outside.after);
  drawPlan(last ?? visits[0], current?.index ?? 0, there);
  const place = last ? placeText(last) : "";
  const placeNow = !last ? "Not heard yet" : there ? place : `Not heard; last ${place}`;
  setText($("place"), placeNow);
  const stays = [
    last && `${there ? "there" : "was there"} ${stayText(last)}`,
    next && `next ${clock(next.from)}, ${placeText(next)}`,
  ];
  setText($("stay"), stays.filter(Boolean).join("; "));
  updateTime($("moment"), at);
  drawScrubber(at, range, placeNow);
  companions.draw(parameter("person"), at, range);
}

/** @param {Visit} visit */
function stayText({ from, to }) {
  return from === to ? `at ${clock(from)}` : `${clock(from)} – ${clock(to)}, ${duration(to - from)}`;
}

/**
 * @param {Visit} visit
 * @param {number} index
 * @param {boolean} there whether it lasts at that time
 */
function drawPlan(visit, index, there) {
  const spots = levelSpots(visit, [visit, ...visits, ...companions.visits], beacons.data?.data ?? []);
  const trail = visits
    .slice(Math.max(0, index - TRAIL_VISITS), index + 1)
    .filter(({ level }) => level === visit.level)
    .map((step) => spotKey(step, spots));
  const id = parameter("person");
  /** @type {Figure} */
  const figure = {
    id,
    name: names.of(id)?.name,
    spotKey: spotKey(visit, spots),
    fresh: there ? "now" : "stale",
    order: 0,
    title: placeText(visit),
    picked: false,
  };
  const figures = [figure, ...companions.figures(visit.level, at, spots)];
  plan.show(spots, figures, { trail, label: `Plan of ${levelText(visit.level)}` });
}

function play() {
  if (at >= range.to) at = range.from;
  playback.play();
}

function pause() {
  playback.pause();
  if (visits.length) changeAddress({ at: Math.round(at) }, { replace: true });
}

/** @param {Visit | undefined} visit */
function goTo(visit) {
  if (visit) moveTo(visit.from);
}

/** @param {number} time unix seconds */
function moveTo(time) {
  at = time;
  draw();
  if (!playback.isPlaying) changeAddress({ at }, { replace: true });
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
for (const [name, rangeAt] of Object.entries(RANGES)) {
  const button = el("button", { type: "button" }, name);
  button.addEventListener("click", async () => {
    await clockKnown;
    show(rangeAt(Math.floor(staff.now())));
  });
  $("hour").parentElement?.before(button);
}
$("hour").addEventListener("change", () => {
  const start = Number(selectById("hour").value);
  if (start) show(hourFrom(start));
});
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
$("previous").addEventListener("click", () => goTo(nextVisit(visits, at, true)));
$("next").addEventListener("click", () => goTo(nextVisit(visits, at, false)));
document.addEventListener("keydown", (event) => {
  const isText = event.target instanceof Element && event.target.matches("input:not([type=range])");
  if (isText || !event.shiftKey || !/^Arrow(Left|Right)$/.test(event.key)) return;
  event.preventDefault(); // the slider would move by a second
  goTo(nextVisit(visits, at, event.key === "ArrowLeft"));
});
$("ribbon", SVGElement).addEventListener("click", (event) => {
  const { left, width } = $("ribbon", SVGElement).getBoundingClientRect();
  moveTo(Math.round(range.from + ((event.clientX - left) / width) * (range.to - range.from)));
});
offerTeams(suggest);
window.addEventListener("popstate", showAddress);
offerPrinting(
  () => ({ id: parameter("person"), range, visits, note: $("note").textContent ?? "" }),
  () => staff.now(),
);
beacons.start();
// Whom the form means, it knows by those who were ever heard, and by their names.
await Promise.all([clockKnown, readNames(nameAll).refresh()]);
adopt(inputById("with"), "with");
adopt(person, "person"); // after the wait, in which somebody may type
showAddress();
