// Coverage: what is unwatched? Every location by the time since anyone was there.
/** @import { Gap } from "../rules/places/coverage_states.js" */
import { Plan } from "../drawings/plan.js";
import { changeAddress, parameter } from "../page/address.js";
import { $, el, inputById, keyed, setAttribute, setText } from "../page/dom.js";
import { names, readNames } from "../page/people.js";
import { remember, remembered } from "../page/remembered.js";
import { officeGapMinutes, showFreshness, shownLevel } from "../page/shell.js";
import { Source } from "../page/source.js";
import { isOf, shownTeam, whoseText } from "../page/team.js";
import { updateTime } from "../page/time_element.js";
import { offerClosing } from "../panels/form_dialog.js";
import { offerCsv, timeColumns } from "../panels/list_csv.js";
import { drawTeams, offerTeams } from "../panels/people/team_filter.js";
import { drawLevelTabs } from "../panels/places/level_tabs.js";
import { WhoWasHere } from "../panels/places/who_was_here.js";
import {
  byLongestGap,
  fromWestToEast,
  neverText,
  sinceText,
  withStates,
} from "../rules/places/coverage_states.js";
import { nearestText, walkers } from "../rules/places/nearest_person.js";
import { duration, isComplete, levelText, levelTitle, minutesOf } from "../rules/words.js";

const REFRESH_SECONDS = 10;
const MAX_COLUMNS = 12; // with more, a level has several rows
const MAX_GAP_MINUTES = 10080; // as in the template

/** Of visits by a team, "" for all. @type {(team: string) => Source<CoverageAnswer>} */
const coverageOf = (team) =>
  new Source(`/monitoring/api/coverage${team && `?team=${encodeURIComponent(team)}`}`, REFRESH_SECONDS, draw);
const teamShown = () => shownTeam() ?? parameter("team");
let readTeam = parameter("team");
let coverage = coverageOf(readTeam);
/** @type {Source<StaffAnswer>} */
const staff = new Source("/monitoring/api/staff", REFRESH_SECONDS, draw);
const whoWasHere = new WhoWasHere(
  () => coverage.now(),
  () => (coverage.data?.data ?? []).map((place) => ({ ...place, level: String(place.level) })),
);
const plan = new Plan($("plan"), { choose: (spot) => whoWasHere.open(spot) });
const gapField = inputById("gap");
/** Those of the list, in its order. @type {Gap[]} */
let shownGaps = [];

/** Everybody of the team that is shown, heard in the last minutes. */
function walkersShown() {
  const isShown = isOf(teamShown());
  return walkers(staff.data, staff.now(), coverage.data?.data ?? []).filter(({ id }) => isShown(id));
}

const byText = () => readTeam && ` by the team ${readTeam}`;

/** As the viewer, else the office, has it. */
const gapMinutes = () => minutesOf(parameter("gap"), remembered("gap"), officeGapMinutes);

function draw() {
  drawTeams(names.teams);
  readCoverage();
  showFreshness(coverage, staff);
  const all = withStates(coverage.data?.data ?? [], coverage.now(), gapMinutes());
  const ready = Boolean(coverage.data);
  $("skeleton").hidden = ready || Boolean(coverage.failure);
  $("board").hidden = !ready;
  const levels = [...new Set(all.map((gap) => gap.level))];
  const level = shownLevel(levels, coverage.data);
  const gaps = all.filter((gap) => gap.state === "gap");
  drawTabs(levels, level, gaps);
  if (ready)
    setText(
      $("summary"),
      all.length === 0
        ? "No location is in the directory yet"
        : summaryText(gaps.length, all.length),
    );
  drawGaps(level ? gaps.filter((gap) => gap.level === level) : gaps);
  if (!ready) return;
  $("plan").hidden = !level;
  $("levels-board").hidden = Boolean(level);
  if (!level) return drawBoard(levels, all);
  drawLevel(
    level,
    all.filter((gap) => gap.level === level),
  );
}

/** Reads the visits of another team from now on, once that is the one to show. */
function readCoverage() {
  const team = teamShown();
  if (team === readTeam) return;
  readTeam = team;
  coverage.stop();
  coverage = coverageOf(team).start();
}

/**
 * Who is missing may have visited a location.
 * @param {number} gaps
 * @param {number} all
 */
function summaryText(gaps, all) {
  const most = isComplete(coverage.data) ? "" : "At most ";
  return `${most}${gaps} of ${all} locations unvisited${byText()} for ${gapMinutes()} minutes or more`;
}

/**
 * @param {string[]} levels
 * @param {string} level
 * @param {Gap[]} gaps
 */
function drawTabs(levels, level, gaps) {
  /** @param {string} name */
  const count = (name) => gaps.filter((gap) => !name || gap.level === name).length;
  drawLevelTabs(levels, level, {
    count: (name) => (coverage.data ? String(count(name)) : "?"),
    title: (name) => `${count(name)} gaps`,
    choose: (name) => {
      changeAddress({ level: name });
      draw();
    },
  });
}

/**
 * @param {string} level
 * @param {Gap[]} here
 */
function drawLevel(level, here) {
  const spots = here.map(({ key, label, x, y, state, age }) => {
    const visited = age === Infinity ? "never visited" : `last visited ${duration(age)} ago`;
    const title = `${label}: ${visited}`;
    return { key, level, location: label, x, y, state, note: sinceText(age), title };
  });
  const gaps = here.filter((gap) => gap.state === "gap").length;
  plan.show(spots, [], { label: `Plan of ${levelText(level)}: ${gaps} gaps` });
}

/**
 * A row of tiles for each level, the highest on top.
 * @param {string[]} levels
 * @param {Gap[]} all
 */
function drawBoard(levels, all) {
  // One under the other on all levels: a column means something then.
  const columns = Math.max(0, ...levels.map((name) => all.filter((gap) => gap.level === name).length));
  $("levels-board").style.setProperty("--columns", String(columns));
  $("levels-board").classList.toggle("in-columns", columns <= MAX_COLUMNS);
  keyed(
    $("levels-board"),
    [...levels].reverse(),
    (name) => name,
    (name) => {
      const title = levelTitle(name);
      return el("section", { class: "tiles", "aria-label": title }, el("h2", {}, title), el("ul"));
    },
    (row, name) => {
      const here = all.filter((gap) => gap.level === name).sort(fromWestToEast);
      keyed(
        row.children[1],
        here,
        (gap) => gap.key,
        ({ level, location }) => {
          const onclick = () => whoWasHere.open({ level, location });
          const title = "Who was here?";
          const button = el("button", { type: "button", title, onclick });
          button.append(el("span", { class: "place" }), el("time"));
          return el("li", {}, button);
        },
        (tile, gap) => {
          setAttribute(tile, "class", `tile ${gap.state}`);
          const [place, visit] = tile.children[0].children;
          setText(place, gap.label);
          updateVisit(visit, gap);
        },
      );
    },
  );
}

/**
 * @param {Element} node
 * @param {Gap} one
 */
function updateVisit(node, { age, last_visited: visited }) {
  if (visited === null)
    setText(node, "never"); // it has a time as soon as somebody comes
  else updateTime(node, visited, sinceText(age));
}

/** @param {Gap[]} gaps */
function drawGaps(gaps) {
  shownGaps = gaps.sort(byLongestGap);
  if (coverage.data) {
    const walking = walkersShown();
    const whose = whoseText(readTeam);
    keyed(
      $("gaps"),
      gaps,
      (gap) => gap.key,
      () => el("li", {}, el("strong"), el("time"), el("span", { class: "quiet" })),
      (row, gap) => {
        const [place, visit, nearest] = row.children;
        setText(place, `${gap.label}, ${levelText(gap.level)}`);
        if (gap.last_visited === null) setText(visit, readTeam ? "never" : neverText(gap, coverage.now()));
        else updateVisit(visit, gap);
        setText(nearest, `Nearest${whose}: ${nearestText(gap, walking, names, isComplete(staff.data))}`);
      },
    );
  }
  $("no-gaps").hidden = !coverage.data || gaps.length > 0;
  if (!$("no-gaps").hidden)
    setText($("no-gaps"), `Every location was visited${byText()} in the last ${gapMinutes()} minutes.`);
}

offerCsv("gaps-csv", () => {
  const walking = walkersShown();
  const complete = isComplete(coverage.data, staff.data);
  return {
    name: `gaps of ${gapMinutes()} minutes ${readTeam}`,
    at: coverage.failure ? coverage.takenAt : coverage.now(),
    columns: {
      level: (gap) => gap.level,
      location: (gap) => gap.location,
      macs: (gap) => gap.macs.join(" "),
      ...timeColumns("last_visited", (gap) => gap.last_visited),
      unvisited: (gap) => sinceText(gap.age),
      nearest: (gap) => nearestText(gap, walking, names, isComplete(staff.data)),
    },
    rows: shownGaps,
    complete,
  };
});
gapField.value = String(gapMinutes());
gapField.addEventListener("change", () => {
  const wanted = Math.round(Number(gapField.value)) || Number(officeGapMinutes);
  const minutes = String(Math.min(MAX_GAP_MINUTES, Math.max(1, wanted)));
  gapField.value = minutes;
  remember("gap", minutes);
  changeAddress({ gap: minutes }, { replace: true });
  draw();
});
offerTeams(draw);
window.addEventListener("popstate", () => {
  gapField.value = String(gapMinutes());
  draw();
});
staff.start();
readNames(draw);
offerClosing();
await coverage.start().refresh(); // it tells the server's time
whoWasHere.showAddress();
