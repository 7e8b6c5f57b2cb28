// Directory: which beacons are there? The list, the unknown ones, the silent ones.
import { adopt, changeAddress, parameter } from "../page/address.js";
import {
  $,
  buttonById,
  el,
  inputById,
  keyed,
  selectById,
  setAttribute,
  setText,
} from "../page/dom.js";
import { names, readNames } from "../page/people.js";
import { API, behindGateway, isReader, showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { errorTexts } from "../panels/dialog.js";
import {
  batteryColumns,
  createBattery,
  drawNext,
  updateBattery,
} from "../panels/directory/batteries.js";
import { openEditor } from "../panels/directory/beacon_editor.js";
import { findPassers, passerOf } from "../panels/directory/passers.js";
import { openImport } from "../panels/import_dialog.js";
import { offerCsv } from "../panels/list_csv.js";
import { batteriesOf } from "../rules/directory/batteries.js";
import { idsText } from "../rules/directory/beacon_ids.js";
import { movesOf } from "../rules/directory/moved_beacons.js";
import { silentLocations } from "../rules/directory/silent_beacons.js";
import { byHowOften } from "../rules/directory/unknown_beacons.js";
import { neverText } from "../rules/places/coverage_states.js";
import {
  duration,
  idsOf,
  isComplete,
  isUnknown,
  levelText,
  levelTitle,
  macText,
} from "../rules/words.js";

// An ingest service learns of an edit at another one within 2 s, and the gateway takes turns.
const REREAD_MS = 2500;
const MAX_NAMES = 4; // of staff who heard an unknown beacon

/** Straight from the API, so that an edit shows at once. @type {Source<BeaconsAnswer>} */
const beacons = new Source(`${API}/beacons`, 30, draw);
/** @type {Source<UnknownAnswer>} */
const unknown = new Source(`${API}/beacons/unknown`, 15, draw);
/** @type {Source<CoverageAnswer>} */
const coverage = new Source("/monitoring/api/coverage", 15, (read) => {
  findPassers(silent(), read.now(), drawSilent);
  draw();
});
/** @type {Source<BatteriesAnswer>} */
const batteries = new Source("/monitoring/api/beacons/batteries", 60, draw);
/** Of beacons that are in the directory. */
const powered = () => batteriesOf(batteries.data?.data ?? [], all());
const search = inputById("search");
const levelField = selectById("level");

const all = () => beacons.data?.data ?? [];

/**
 * After an edit: says what was done, offers to take it back where that can be done, reads again.
 * @type {import("../panels/directory/beacon_editor.js").Changed}
 */
async function changed(text, undo) {
  $("done").hidden = false;
  setText($("done-says"), text);
  const button = buttonById("undo");
  button.hidden = !undo;
  button.disabled = false;
  button.onclick = async () => {
    button.disabled = true;
    try {
      await changed((await undo?.()) ?? "");
    } catch (error) {
      setText($("done-says"), `This was not undone, or in part: ${errorTexts(error).join(" ")}`);
      button.disabled = false;
    }
  };
  const read = () => Promise.all([beacons.refresh(), unknown.refresh()]);
  setTimeout(read, REREAD_MS);
  await read();
}

/** @param {string} mac "" for a new beacon */
const emptyBeacon = (mac) => ({ mac, level: "", location: "", x: null, y: null, aliases: [] });

function draw() {
  showFreshness(beacons, unknown);
  $("missing").hidden = isComplete(coverage.data);
  const ready = Boolean(beacons.data);
  $("skeleton").hidden = ready || Boolean(beacons.failure);
  drawUnknown(unknown.data?.data ?? []);
  drawSilent();
  if (!ready) return;
  drawNext(powered(), batteries.now());
  const known = all().filter((beacon) => !isUnknown(beacon.level));
  const levels = new Set(known.map((beacon) => beacon.level)).size;
  setText($("summary"), `${all().length} beacons on ${levels} levels`);
  drawBeacons();
}

/** @param {UnknownBeacon[]} strangers */
function drawUnknown(strangers) {
  $("inbox").hidden = !unknown.data;
  const { often, once } = byHowOften(strangers);
  setText($("inbox-count"), String(often.length));
  $("inbox-empty").hidden = strangers.length > 0;
  keyed($("unknown"), often, (beacon) => beacon.mac, createUnknown, updateUnknown);
  $("once").hidden = once.length === 0;
  setText($("once-count"), `${once.length}${unknown.data?.truncated ? " or more" : ""} heard once`);
  keyed($("unknown-once"), once, (beacon) => beacon.mac, createUnknown, updateUnknown);
}

/** @param {UnknownBeacon} one */
function createUnknown({ mac }) {
  const label = `Assign ${macText(mac)}`;
  const button = el(
    "button",
    { type: "button", class: "edit", disabled: !behindGateway, "aria-label": label },
    "Assign",
  );
  button.addEventListener("click", () =>
    openEditor(emptyBeacon(mac), { isUnknown: true, all: all(), opener: button, changed }),
  );
  const heard = [el("span"), el("span", { class: "quiet" })];
  return el("li", {}, el("span", { class: "mac" }), ...heard, isReader ? null : button);
}

/**
 * @param {Element} row
 * @param {UnknownBeacon} beacon
 */
function updateUnknown(row, beacon) {
  const [mac, by, last] = row.children;
  const staff = (beacon.staff ?? []).map(String).sort(names.compare);
  const whom = names.mentionAll(staff.slice(0, MAX_NAMES), staff.length - MAX_NAMES);
  const times = beacon.count === 1 ? "once" : `${beacon.count.toLocaleString()} times`;
  const ago = duration(Math.max(0, unknown.now() - beacon.last_heard));
  setText(mac, macText(beacon.mac));
  setText(by, `heard ${times} by ${whom}`);
  setText(last, `last ${ago} ago`);
  setAttribute(last, "title", new Date(beacon.last_heard * 1000).toLocaleString());
}

/** Who is missing may have heard a beacon that seems silent. */
const silent = () =>
  silentLocations(isComplete(coverage.data) ? (coverage.data?.data ?? []) : [], coverage.now());

function drawSilent() {
  const now = coverage.now();
  const silentNow = silent().filter((beacon) => passerOf(beacon) !== undefined);
  $("silent").hidden = silentNow.length === 0;
  setText($("silent-count"), String(silentNow.length));
  keyed(
    $("silent-list"),
    silentNow,
    (beacon) => `${beacon.level} ${beacon.location}`,
    () => el("li", {}, el("strong"), el("span"), el("time", { class: "quiet" })),
    (row, beacon) => {
      const [place, passed, last] = row.children;
      const macs = beacon.macs.map(macText).join(", ");
      const { last_visited: heard } = beacon;
      setText(place, `${beacon.location}, ${levelText(beacon.level)}`);
      setText(passed, `${macs}: ${names.mention(passerOf(beacon) ?? "")} passed ${beacon.passed.join(" and ")}, and did not hear it`);
      if (heard === null) setText(last, neverText(beacon, now));
      else updateTime(last, heard, `last heard ${duration(now - heard)} ago`);
    },
  );
}

function drawBeacons() {
  const levels = [...new Set(all().map((beacon) => String(beacon.level)))];
  keyed(
    levelField,
    ["", ...levels],
    (name) => name,
    (name) => el("option", { value: name }, name ? levelTitle(name) : "All levels"),
    () => {},
  );
  levelField.value = levels.includes(parameter("level")) ? parameter("level") : "";
  const shown = all().filter((beacon) => matches(beacon, levelField.value, parameter("q")));
  const table = $("beacons", HTMLTableElement);
  const byMac = new Map(powered().map(({ mac, battery }) => [mac, battery]));
  table.classList.toggle("powerless", byMac.size === 0); // where no phone sends what beacons tell
  keyed(
    table.tBodies[0],
    shown,
    (beacon) => beacon.mac,
    createBeacon,
    (row, beacon) => updateBeacon(row, beacon, byMac.get(beacon.mac)),
  );
  $("none").hidden = shown.length > 0;
  const empty = "The directory is empty: add a beacon, or import a CSV file.";
  setText($("none"), all().length ? "No beacon matches." : empty);
}

/**
 * @param {Beacon} beacon
 * @param {string} level "" for all
 * @param {string} wanted
 */
function matches(beacon, level, wanted) {
  const { level: itsLevel, location } = beacon;
  const ids = `${idsOf(beacon).join(" ")} ${idsText(beacon)}`;
  const text = `${ids} ${levelText(itsLevel)} ${location}`.toLowerCase();
  return (!level || String(itsLevel) === level) && text.includes(wanted.trim().toLowerCase());
}

/** @param {Beacon} beacon */
function createBeacon({ mac }) {
  const button = el("button", { type: "button", class: "edit", disabled: !behindGateway }, "Edit");
  button.addEventListener("click", () => {
    const beacon = all().find((candidate) => candidate.mac === mac);
    if (beacon) openEditor(beacon, { all: all(), opener: button, changed });
  });
  return el(
    "tr",
    {},
    el("td"),
    el("td"),
    el("td", { class: "mac" }),
    el("td", { class: "number" }),
    el("td", {}, createBattery()),
    el("td", { class: "actions" }, isReader ? null : button),
  );
}

/**
 * @param {Element} row
 * @param {Beacon} beacon
 * @param {Battery | undefined} battery
 */
function updateBeacon(row, beacon, battery) {
  const [level, location, mac, position, power, actions] = row.children;
  updateBattery(power.children[0], battery);
  setText(level, isUnknown(beacon.level) ? "unknown" : String(beacon.level));
  setText(location, beacon.location);
  setText(mac, idsText(beacon));
  setText(position, Number.isFinite(beacon.x) ? `${beacon.x}, ${beacon.y}` : "–");
  const [button] = actions.children; // a reader has none
  if (button) setAttribute(button, "aria-label", `Edit ${macText(beacon.mac)}, ${beacon.location}`);
}

adopt(search, "q");
search.addEventListener("input", () => {
  changeAddress({ q: search.value }, { replace: true });
  draw();
});
levelField.addEventListener("change", () => {
  changeAddress({ level: levelField.value });
  draw();
});
if (!isReader) {
  const add = buttonById("add"),
    importing = buttonById("import");
  add.addEventListener("click", () =>
    openEditor(emptyBeacon(""), { all: all(), opener: add, changed }),
  );
  importing.addEventListener("click", () =>
    openImport("/beacons/import", { changesOf: movesOf, opener: importing, changed }),
  );
  for (const button of [add, importing]) button.disabled = !behindGateway;
}
window.addEventListener("popstate", () => {
  search.value = parameter("q");
  draw();
});
offerCsv("batteries-csv", () => ({
  name: "batteries",
  at: batteries.failure ? batteries.takenAt : batteries.now(),
  columns: batteryColumns,
  rows: powered(),
  complete: true,
}));
beacons.start();
batteries.start();
unknown.start();
coverage.start();
readNames(draw);
