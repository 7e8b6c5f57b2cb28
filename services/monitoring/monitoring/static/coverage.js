// Coverage: what is unwatched? Every location by the time since anyone was there.
import { $, address, el, go, keyed, parameter, setAttribute, setText } from "./dom.js";
import { ambassadors, nearestText } from "./nearest.js";
import { Plan } from "./plan.js";
import { tell } from "./shell.js";
import { Source } from "./source.js";
import { Level, compare, duration, isUnknown, levelOrder, levelText, updateTime } from "./words.js";

const REFRESH_SECONDS = 10;
const AHEAD_SECONDS = 120; // a visit in the future: the phone's clock is wrong, and so is the time

const coverage = new Source("/monitoring/api/coverage", REFRESH_SECONDS, draw);
const staff = new Source("/monitoring/api/staff", REFRESH_SECONDS, draw);
const plan = new Plan($("plan"));

const office = Number(document.querySelector("[data-gap]").dataset.gap);
const limit = () => {
  const minutes = Number.parseInt(parameter("gap") || localStorage.getItem("gap") || "", 10);
  return minutes > 0 ? minutes : office;
};

function locations() {
  const now = coverage.now();
  return (coverage.data?.data ?? [])
    .filter((one) => !isUnknown(one.level))
    .map((one) => {
      const age = one.last_visited === null ? Infinity : now - one.last_visited;
      const share = age / 60 / limit();
      const state = share >= 1 ? "gap" : share >= 0.5 || age < -AHEAD_SECONDS ? "soon" : "ok";
      const level = String(one.level);
      return { ...one, key: `${level}\n${one.location}`, level, age, state };
    });
}

function since(age) {
  if (age === Infinity) return "never";
  if (age < -AHEAD_SECONDS) return "clock ahead";
  return age < 60 ? "now" : duration(age);
}

function draw() {
  tell(coverage, staff);
  const all = locations();
  const ready = Boolean(coverage.data);
  $("skeleton").hidden = ready || Boolean(coverage.failure);
  $("board").hidden = !ready;
  const levels = [...new Set(all.map((one) => one.level))].sort(levelOrder);
  const level = levels.includes(parameter("level")) ? parameter("level") : "";
  drawTabs(levels, level, all);
  const gaps = all.filter((one) => one.state === "gap");
  if (ready)
    setText(
      $("summary"),
      all.length === 0
        ? "No location is in the directory yet"
        : `${gaps.length} of ${all.length} locations unvisited for ${limit()} minutes or more`,
    );
  drawGaps(level ? gaps.filter((one) => one.level === level) : gaps);
  if (!ready) return;
  $("plan").hidden = !level;
  $("levels-board").hidden = Boolean(level);
  if (level)
    drawLevel(
      level,
      all.filter((one) => one.level === level),
    );
  else drawBoard(levels, all);
}

function drawTabs(levels, level, all) {
  const count = (name) =>
    all.filter((one) => one.state === "gap" && (!name || one.level === name)).length;
  keyed(
    $("levels"),
    ["", ...levels],
    (name) => name,
    (name) =>
      el(
        "a",
        {
          class: "tab",
          onclick: (event) => {
            event.preventDefault();
            go({ level: name });
            draw();
          },
        },
        el("span"),
        el("span", { class: "count" }),
      ),
    (link, name) => {
      setAttribute(link, "href", address({ level: name }));
      setAttribute(link, "aria-current", name === level ? "true" : null);
      setText(link.children[0], name ? Level(name) : "All levels");
      setText(link.children[1], coverage.data ? String(count(name)) : "?");
      setAttribute(link, "title", `${count(name)} gaps`);
    },
  );
}

function drawLevel(level, here) {
  const spots = here.map((one) => ({
    key: one.key,
    level,
    location: one.location,
    x: one.x,
    y: one.y,
    state: one.state,
    note: since(one.age),
    title: `${one.location}: ${one.age === Infinity ? "never visited" : `last visited ${duration(one.age)} ago`}`,
  }));
  plan.show(spots, [], {
    label: `Plan of ${levelText(level)}: ${here.filter((one) => one.state === "gap").length} gaps`,
  });
}

// A row of tiles for each level, the highest on top.
function drawBoard(levels, all) {
  const byLevel = [...levels].reverse();
  keyed(
    $("levels-board"),
    byLevel,
    (name) => name,
    (name) =>
      el(
        "section",
        { class: "tiles", "aria-label": Level(name) },
        el("h2", {}, Level(name)),
        el("ul"),
      ),
    (row, name) => {
      const here = all
        .filter((one) => one.level === name)
        .sort(
          (one, other) =>
            (one.x ?? Infinity) - (other.x ?? Infinity) || compare(one.location, other.location),
        );
      keyed(
        row.lastChild,
        here,
        (one) => one.key,
        () => el("li", {}, el("span", { class: "place" }), el("time")),
        (tile, one) => {
          setAttribute(tile, "class", `tile ${one.state}`);
          setText(tile.firstChild, one.location);
          lastVisit(tile.lastChild, one);
        },
      );
    },
  );
}

function lastVisit(node, one) {
  if (one.age === Infinity)
    setText(node, "never"); // has a time as soon as somebody comes
  else updateTime(node, one.last_visited, since(one.age));
}

function drawGaps(gaps) {
  const walking = ambassadors(staff, coverage.data?.data ?? []);
  gaps.sort(
    (one, other) =>
      other.age - one.age ||
      levelOrder(one.level, other.level) ||
      compare(one.location, other.location),
  );
  if (coverage.data)
    keyed(
      $("gaps"),
      gaps,
      (one) => one.key,
      () => el("li", {}, el("strong"), el("time"), el("span", { class: "quiet" })),
      (row, one) => {
        setText(row.children[0], `${one.location}, ${levelText(one.level)}`);
        lastVisit(row.children[1], one);
        setText(row.children[2], `Nearest: ${nearestText(one, walking)}`);
      },
    );
  $("no-gaps").hidden = !coverage.data || gaps.length > 0;
  if (!$("no-gaps").hidden)
    setText($("no-gaps"), `Every location was visited in the last ${limit()} minutes.`);
}

$("gap").value = limit();
$("gap").addEventListener("change", (event) => {
  const minutes = Math.min(10080, Math.max(1, Math.round(Number(event.target.value)) || office));
  event.target.value = minutes;
  localStorage.setItem("gap", minutes);
  go({ gap: minutes }, { replace: true });
  draw();
});
window.addEventListener("popstate", () => {
  $("gap").value = limit();
  draw();
});
staff.start();
coverage.start();
