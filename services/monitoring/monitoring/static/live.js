// Live: where is everyone? The plan of a level, or the building from the side, and the list beside it.
import { $, address, el, go, keyed, parameter, setAttribute, setText } from "./dom.js";
import { Person } from "./person.js";
import { Plan } from "./plan.js";
import { Section } from "./section.js";
import { tell } from "./shell.js";
import { Source } from "./source.js";
import { Level, compare, duration, freshness, GONE_SECONDS, heardAt as heardTime, heardText, isUnknown, levelOrder, levelText, people, placeText, spotText, updateTime } from "./words.js";

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

// What the directory says of a spot that staff are at: by beacon, else by name, else off the plan.
function spots() {
  const known = (beacons.data?.data ?? []).map((beacon) => ({ ...beacon, key: beacon.mac, location: spotText(beacon) }));
  return { known, byMac: new Map(known.map((spot) => [spot.mac, spot])), byName: new Map(known.map((spot) => [`${spot.level}\n${spot.location}`, spot])) };
}

function everyone(directory) {
  const now = staff.now();
  const asOf = staff.failure ? staff.takenAt : now; // blind: whom we saw then, however long ago
  const list = (staff.data?.data ?? []).map((found) => {
    const heardAt = heardTime(found, staff.data.as_of);
    const level = isUnknown(found.level) ? "unknown" : String(found.level);
    const age = now - heardAt;
    const byMac = directory.byMac.get(found.mac);
    const spot = byMac?.level === level ? byMac : directory.byName.get(`${level}\n${found.location}`);
    const id = String(found.staff_id);
    const title = `Staff ${id}: ${placeText({ ...found, level })}, ${heardText(heardAt, age, staff.failure)}`;
    return { ...found, id, level, age, heardAt, title, spot, fresh: freshness(age), gone: asOf - heardAt > GONE_SECONDS, ahead: found.timestamp - heardAt, picked: id === parameter("person") };
  });
  list.sort((one, other) => compare(one.id, other.id));
  list.forEach((one, order) => {
    one.order = order;
    one.spotKey = one.spot?.key ?? `${one.level} ${one.mac}`;
  });
  return list;
}

// The spots to draw: the directory's, and those where somebody is that it does not know.
function drawn(directory, present) {
  const lost = new Map();
  for (const one of present) if (!one.spot) lost.set(one.spotKey, { key: one.spotKey, level: one.level, location: spotText(one), x: null, y: null });
  const busy = new Set(present.map((one) => one.spotKey));
  const known = directory.known.filter((spot) => Number.isFinite(spot.x) || busy.has(spot.key));
  return [...known, ...lost.values()];
}

function draw() {
  tell(staff);
  const directory = spots();
  const all = everyone(directory);
  const present = all.filter((one) => !one.gone);
  const every = drawn(directory, present);
  const levels = [...new Set([...directory.known.map((spot) => spot.level), ...present.map((one) => one.level)])].sort(levelOrder);
  const level = levels.includes(parameter("level")) ? parameter("level") : "";
  if (beacons.data && present.some((one) => one.known && !one.spot)) beacons.refresh(); // new in the directory
  const chosen = all.find((one) => one.picked);
  drawTabs(levels, level, present);
  drawPicture(levels, level, present, every, chosen);
  drawList(all, level);
  drawSummary(all, present);
  person.show(chosen, parameter("person"), staff);
}

function drawTabs(levels, level, present) {
  const count = (name) => present.filter((one) => !name || one.level === name).length;
  const update = (link, name) => {
    setAttribute(link, "href", address({ level: name }));
    setAttribute(link, "aria-current", name === level ? "true" : null);
    setText(link.children[0], name ? Level(name) : "All levels");
    setText(link.children[1], String(count(name)));
    setAttribute(link, "title", `${name ? Level(name) : "All levels"}: ${people(count(name))}`);
  };
  const create = (name) => el("a", { class: "tab", onclick: (event) => follow(event, { level: name }) }, el("span"), el("span", { class: "count" }));
  keyed($("levels"), ["", ...levels], (name) => name, create, update);
  if (level !== tabShown) $("levels").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
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
    plan.show(every.filter((spot) => spot.level === level), here, { label, trail: chosen?.level === level ? person.trail(level, every) : [] });
  } else {
    const stacked = levels.map((name) => ({ level: name, spots: every.filter((spot) => spot.level === name) }));
    section.show(stacked, present, `Cross-section of ${levels.length} levels: ${people(present.length)}`);
  }
}

const SORTS = {
  name: (one, other) => one.order - other.order,
  heard: (one, other) => other.heardAt - one.heardAt || one.order - other.order,
  level: (one, other) => levelOrder(one.level, other.level) || compare(spotText(one), spotText(other)) || one.order - other.order,
};

function drawList(all, level) {
  const wanted = parameter("q").trim().toLowerCase();
  const matches = (one) => !wanted || `staff ${one.id} ${placeText(one)} ${one.mac}`.toLowerCase().includes(wanted);
  const shown = all.filter((one) => (!level || one.level === level) && matches(one));
  shown.sort((one, other) => one.gone - other.gone || (SORTS[parameter("sort")] ?? SORTS.name)(one, other));
  const list = $("people");
  // What a hand or an eye is on does not move away.
  const busy = list.matches(":hover") || list.contains(document.activeElement);
  if (staff.data) list.querySelectorAll(".skeleton").forEach((row) => row.remove());
  if (staff.data) keyed(list, shown, (one) => one.id, createRow, updateRow, { reorder: !busy || !list.nodes });
  $("nobody").hidden = !staff.data || shown.length > 0 || all.length === 0;
  if (!$("nobody").hidden) setText($("nobody"), wanted ? `Nobody matches “${parameter("q").trim()}”${level ? ` on ${levelText(level)}` : ""}.` : `Nobody was heard on ${levelText(level)}.`);
}

function createRow(one) {
  return el("li", {}, el("button", { type: "button", class: "row", onclick: (event) => open({ person: event.currentTarget.getAttribute("aria-pressed") === "true" ? "" : one.id }) },
    el("span", { class: "mark", "aria-hidden": "true" }), el("span", { class: "who" }), el("span", { class: "where" }), el("span", { class: "floor-name" }), el("time", { class: "heard" })));
}

function updateRow(row, one) {
  const button = row.firstChild;
  const [mark, who, where, floorName, heard] = button.children;
  setAttribute(button, "data-staff", one.id);
  setAttribute(button, "aria-pressed", one.picked);
  setAttribute(button, "class", `row ${one.gone ? "gone" : one.fresh}`);
  setAttribute(mark, "class", `mark ${one.fresh}`);
  setText(who, `Staff ${one.id}`);
  setText(where, spotText(one));
  setText(floorName, Level(one.level));
  updateTime(heard, one.heardAt, heardText(one.heardAt, one.age, staff.failure));
}

function drawSummary(all, present) {
  if (!staff.data) {
    setText($("summary"), staff.failure ? "No positions to show yet" : "Loading…");
    return;
  }
  const gone = all.length - present.length;
  setText($("summary"), `${people(present.length)} heard in the last 15 minutes${gone ? `, ${gone} longer ago` : ""}`);
  $("empty").hidden = Boolean(staff.failure) || present.length > 0;
  if (!$("empty").hidden) {
    const last = Math.max(...all.map((one) => one.heardAt));
    setText($("empty-title"), all.length ? "Nobody was heard in the last 15 minutes" : "No detections yet");
    setText($("empty-since"), all.length ? `The last detection is ${duration(staff.now() - last)} old. Waymark works; no phone has reported a beacon since.` : "Waymark works; no phone has reported a beacon yet.");
  }
}

$("search").value = parameter("q");
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
