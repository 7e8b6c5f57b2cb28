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
import { API, behindGateway, isReader, showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { openEditor } from "../panels/beacon_editor.js";
import { openImport } from "../panels/beacon_import.js";
import { errorTexts } from "../panels/dialog.js";
import { findPassers, passerOf } from "../panels/passers.js";
import { neverText } from "../rules/coverage_states.js";
import { silentLocations } from "../rules/silent_beacons.js";
import { byHowOften } from "../rules/unknown_beacons.js";
import {
  compare,
  duration,
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
const search = inputById("search");
const levelField = selectById("level");

const all = () => beacons.data?.data ?? [];

/**
 * After an edit: says what was done, offers to take it back where that can be done, reads again.
 * @type {import("../panels/beacon_editor.js").Changed}
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
const emptyBeacon = (mac) => ({ mac, level: "", location: "", x: null, y: null });

function draw() {
  showFreshness(beacons, unknown);
  $("missing").hidden = isComplete(coverage.data);
  const ready = Boolean(beacons.data);
  $("skeleton").hidden = ready || Boolean(beacons.failure);
  drawUnknown(unknown.data?.data ?? []);
  drawSilent();
  if (!ready) return;
  const known = all().filter((one) => !isUnknown(one.level));
  const levels = new Set(known.map((one) => one.level)).size;
  setText($("summary"), `${all().length} beacons on ${levels} levels`);
  drawBeacons();
}

/** @param {UnknownBeacon[]} found */
function drawUnknown(found) {
  $("inbox").hidden = !unknown.data;
  const { often, once } = byHowOften(found);
  setText($("inbox-count"), String(often.length));
  $("inbox-empty").hidden = found.length > 0;
  keyed($("unknown"), often, (one) => one.mac, createUnknown, updateUnknown);
  $("once").hidden = once.length === 0;
  setText($("once-count"), `${once.length}${unknown.data?.truncated ? " or more" : ""} heard once`);
  keyed($("unknown-once"), once, (one) => one.mac, createUnknown, updateUnknown);
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
 * @param {UnknownBeacon} one
 */
function updateUnknown(row, one) {
  const [mac, by, last] = row.children;
  const staff = (one.staff ?? []).map(String).sort(compare);
  const more = staff.length > MAX_NAMES ? ` and ${staff.length - MAX_NAMES} more` : "";
  const times = one.count === 1 ? "once" : `${one.count.toLocaleString()} times`;
  const ago = duration(Math.max(0, unknown.now() - one.last_heard));
  setText(mac, macText(one.mac));
  setText(by, `heard ${times} by staff ${staff.slice(0, MAX_NAMES).join(", ")}${more}`);
  setText(last, `last ${ago} ago`);
  setAttribute(last, "title", new Date(one.last_heard * 1000).toLocaleString());
}

/** Who is missing may have heard a beacon that seems silent. */
const silent = () =>
  silentLocations(isComplete(coverage.data) ? (coverage.data?.data ?? []) : [], coverage.now());

function drawSilent() {
  const now = coverage.now();
  const found = silent().filter((one) => passerOf(one) !== undefined);
  $("silent").hidden = found.length === 0;
  setText($("silent-count"), String(found.length));
  keyed(
    $("silent-list"),
    found,
    (one) => `${one.level} ${one.location}`,
    () => el("li", {}, el("strong"), el("span"), el("time", { class: "quiet" })),
    (row, one) => {
      const [place, passed, last] = row.children;
      const macs = one.macs.map(macText).join(", ");
      const { last_visited: heard } = one;
      setText(place, `${one.location}, ${levelText(one.level)}`);
      setText(passed, `${macs}: staff ${passerOf(one)} passed ${one.passed.join(" and ")}, and did not hear it`);
      if (heard === null) setText(last, neverText(one, now));
      else updateTime(last, heard, `last heard ${duration(now - heard)} ago`);
    },
  );
}

function drawBeacons() {
  const levels = [...new Set(all().map((one) => String(one.level)))];
  keyed(
    levelField,
    ["", ...levels],
    (name) => name,
    (name) => el("option", { value: name }, name ? levelTitle(name) : "All levels"),
    () => {},
  );
  levelField.value = levels.includes(parameter("level")) ? parameter("level") : "";
  const shown = all().filter((one) => matches(one, levelField.value, parameter("q")));
  const body = $("beacons", HTMLTableElement).tBodies[0];
  keyed(body, shown, (one) => one.mac, createBeacon, updateBeacon);
  $("none").hidden = shown.length > 0;
  const empty = "The directory is empty: add a beacon, or import a CSV file.";
  setText($("none"), all().length ? "No beacon matches." : empty);
}

/**
 * @param {Beacon} one
 * @param {string} level "" for all
 * @param {string} wanted
 */
function matches({ mac, level: itsLevel, location }, level, wanted) {
  const text = `${mac} ${macText(mac)} ${levelText(itsLevel)} ${location}`.toLowerCase();
  return (!level || String(itsLevel) === level) && text.includes(wanted.trim().toLowerCase());
}

/** @param {Beacon} beacon */
function createBeacon({ mac }) {
  const button = el("button", { type: "button", class: "edit", disabled: !behindGateway }, "Edit");
  button.addEventListener("click", () => {
    const beacon = all().find((one) => one.mac === mac);
    if (beacon) openEditor(beacon, { all: all(), opener: button, changed });
  });
  return el(
    "tr",
    {},
    el("td"),
    el("td"),
    el("td", { class: "mac" }),
    el("td", { class: "number" }),
    el("td", { class: "actions" }, isReader ? null : button),
  );
}

/**
 * @param {Element} row
 * @param {Beacon} one
 */
function updateBeacon(row, one) {
  const [level, location, mac, position, actions] = row.children;
  setText(level, isUnknown(one.level) ? "unknown" : String(one.level));
  setText(location, one.location);
  setText(mac, macText(one.mac));
  setText(position, Number.isFinite(one.x) ? `${one.x}, ${one.y}` : "–");
  const [button] = actions.children; // a reader has none
  if (button) setAttribute(button, "aria-label", `Edit ${macText(one.mac)}, ${one.location}`);
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
  importing.addEventListener("click", () => openImport({ opener: importing, changed }));
  for (const button of [add, importing]) button.disabled = !behindGateway;
}
window.addEventListener("popstate", () => {
  search.value = parameter("q");
  draw();
});
beacons.start();
unknown.start();
coverage.start();
