// Live: where is everyone? The plan of a level, or the building from the side, and the list beside it.
import { $, address, adopt, el, go, keyed, parameter, setAttribute, setText } from "./dom.js";
import { drawn, everyone, spots } from "./everyone.js";
import { SORTS, drawList } from "./list.js";
import { Person } from "./person.js";
import { Plan } from "./plan.js";
import { Section } from "./section.js";
import { tell } from "./shell.js";
import { Source } from "./source.js";
import { Level, duration, levelOrder, levelText, people, spotText } from "./words.js";

const REFRESH_SECONDS = 5;
const DIRECTORY_SECONDS = 60;

let tabShown = "";
const staff = new Source("/monitoring/api/staff", REFRESH_SECONDS, draw);
const beacons = new Source("/monitoring/api/beacons", DIRECTORY_SECONDS, draw);

// A marker is a person; one that counts many leads to their level, and there to their spot.
function pick(item) {
  if (!item.more) return open({ person: item.person.id });
  const [first] = item.more;
  if (!parameter("level")) return open({ level: first.level });
  $("search").value = spotText(first);
  open({ q: spotText(first) });
}

const plan = new Plan($("plan"), { pick });
const section = new Section($("section"), { pick, choose: (level) => open({ level }) });
const person = new Person($("person"), () => open({ person: "" }), draw);

function open(changes) {
  go(changes);
  draw();
}

function draw(source) {
  tell(staff);
  const directory = spots(beacons.data?.data ?? []);
  const all = everyone(staff, directory, parameter("person"));
  const present = all.filter((one) => !one.gone);
  const every = drawn(directory, present);
  const levels = [
    ...new Set([...directory.known.map((spot) => spot.level), ...present.map((one) => one.level)]),
  ].sort(levelOrder);
  const level = levels.includes(parameter("level")) ? parameter("level") : "";
  // New in the directory: read that again, once for each time that we hear of it.
  if (source === staff && present.some((one) => one.known && !one.spot)) beacons.refresh();
  const chosen = all.find((one) => one.picked);
  drawTabs(levels, level, present);
  drawPicture(levels, level, present, every, chosen);
  drawList(staff, all, level, open);
  drawSummary(all, present);
  person.show(chosen, parameter("person"), staff);
}

function drawTabs(levels, level, present) {
  const count = (name) => present.filter((one) => !name || one.level === name).length;
  const update = (link, name) => {
    setAttribute(link, "href", address({ level: name }));
    setAttribute(link, "aria-current", name === level ? "true" : null);
    setText(link.children[0], name ? Level(name) : "All levels");
    setText(link.children[1], staff.data ? String(count(name)) : "?"); // not 0: nobody knows
    const known = staff.data ? people(count(name)) : "cannot be told now";
    setAttribute(link, "title", `${name ? Level(name) : "All levels"}: ${known}`);
  };
  const create = (name) =>
    el(
      "a",
      { class: "tab", onclick: (event) => follow(event, { level: name }) },
      el("span"),
      el("span", { class: "count" }),
    );
  keyed($("levels"), ["", ...levels], (name) => name, create, update);
  if (level !== tabShown)
    $("levels")
      .querySelector("[aria-current]")
      ?.scrollIntoView({ block: "nearest", inline: "center" });
  tabShown = level;
}

function follow(event, changes) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(changes);
}

function drawPicture(levels, level, present, every, chosen) {
  const ready = Boolean(staff.data);
  $("skeleton").hidden = ready || Boolean(staff.failure);
  $("section").hidden = !ready || Boolean(level);
  $("plan").hidden = !ready || !level;
  if (!ready) return;
  if (level) {
    const here = present.filter((one) => one.level === level);
    const label = `Plan of ${levelText(level)}: ${people(here.length)}`;
    plan.show(
      every.filter((spot) => spot.level === level),
      here,
      { label, trail: chosen?.level === level ? person.trail(level, every) : [] },
    );
  } else {
    const stacked = levels.map((name) => ({
      level: name,
      spots: every.filter((spot) => spot.level === name),
    }));
    section.show(
      stacked,
      present,
      `Cross-section of ${levels.length} levels: ${people(present.length)}`,
    );
  }
}

function drawSummary(all, present) {
  if (!staff.data) {
    setText($("summary"), staff.failure ? "No positions to show yet" : "Loading…");
    return;
  }
  const gone = all.length - present.length;
  setText(
    $("summary"),
    `${people(present.length)} heard in the last 15 minutes${gone ? `, ${gone} longer ago` : ""}`,
  );
  $("empty").hidden = Boolean(staff.failure) || present.length > 0;
  if (!$("empty").hidden) {
    const last = Math.max(...all.map((one) => one.heardAt));
    setText(
      $("empty-title"),
      all.length ? "Nobody was heard in the last 15 minutes" : "No detections yet",
    );
    setText(
      $("empty-since"),
      all.length
        ? `The last detection is ${duration(staff.now() - last)} old. Waymark works; no phone has reported a beacon since.`
        : "Waymark works; no phone has reported a beacon yet.",
    );
  }
}

adopt($("search"), "q");
$("search").addEventListener("input", (event) => {
  go({ q: event.target.value }, { replace: true });
  draw();
});
$("sort").value = SORTS[parameter("sort")] ? parameter("sort") : "name";
$("sort").addEventListener("change", (event) => {
  go({ sort: event.target.value === "name" ? "" : event.target.value }, { replace: true });
  draw();
});
window.addEventListener("popstate", () => {
  $("search").value = parameter("q");
  $("sort").value = SORTS[parameter("sort")] ? parameter("sort") : "name";
  draw();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && parameter("person")) open({ person: "" });
});
beacons.start();
staff.start();
