// The dialog in which one beacon is added, edited, assigned, made one with another, or deleted.
import { $, buttonById, el, inputById, keyed, setText } from "../../page/dom.js";
import { names } from "../../page/people.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { idOf, idsIn, idsText, withId } from "../../rules/directory/beacon_ids.js";
import { changesText } from "../../rules/directory/corrections.js";
import { compare, idsOf, macText, placeText } from "../../rules/words.js";
import { drawProblems, errorTexts, openDialog } from "../dialog.js";

/**
 * @typedef {object} Editing
 * @property {boolean} [isUnknown] the beacon was heard, but is in no directory: its past detections
 *   may be corrected
 * @property {Beacon[]} all for suggestions
 * @property {HTMLElement} opener
 * @property {Changed} changed
 */

/**
 * Called with what was done, and with what takes it back where that can be done.
 * @typedef {(text: string, undo?: () => Promise<string>) => Promise<void>} Changed
 */

/**
 * How a beacon is put into the directory.
 * @typedef {object} Wanted
 * @property {string} mac
 * @property {Omit<Beacon, "mac">} body
 * @property {boolean} takes whether ids that other entries have are taken from them
 * @property {boolean} isPast whether past detections are corrected as well
 */

const PLACE = /** @type {const} */ (["level", "location", "x", "y"]);

/** @param {string} name of a field of the form */
function fieldOf(name) {
  const field = $("editor").querySelector(`[name="${name}"]`);
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement))
    throw new Error(`no such field: ${name}`);
  return field;
}


/** @param {string} name */
const textIn = (name) => fieldOf(name).value.trim();

/**
 * @param {Beacon} beacon without a MAC: a new one
 * @param {Editing} editing
 */
export function openEditor(beacon, { isUnknown = false, all, opener, changed }) {
  const isNew = !beacon.mac;
  const others = all.filter(({ mac }) => mac !== beacon.mac);
  fill(beacon, isNew, isUnknown);
  suggest(all, others);
  drawAliases(isUnknown ? [] : (beacon.aliases ?? []), (alias) => run(() => splitOff(beacon, alias), changed));
  drawProblems($("editor-errors"), []);
  const form = $("editor-form", HTMLFormElement);
  const wanted = () => wantedIn(beacon, others);
  form.onsubmit = (event) => {
    event.preventDefault();
    run(() => save(wanted(), all), changed);
  };
  // What cannot be counted now is told when it is to be saved.
  const look = () => {
    showSame(beacon, withId(others, idOf(textIn("same"))));
    void foresee(wanted).catch(() => setText($("past-says"), ""));
  };
  form.onchange = look;
  look();
  buttonById("delete").onclick = () => {
    const question = `Delete ${idsText(beacon)}, ${beacon.location}? Its past detections keep their place.`;
    if (!confirm(question)) return;
    const remove = async () => {
      await request(addressOf(beacon.mac), { method: "DELETE" });
      return { text: `Deleted ${macText(beacon.mac)}.` };
    };
    run(remove, changed);
  };
  const dialog = $("editor", HTMLDialogElement);
  buttonById("cancel").onclick = () => dialog.close();
  openDialog(dialog, opener);
  fieldOf(isNew ? "mac" : "level").focus();
}

/**
 * @param {Beacon} beacon
 * @param {boolean} isNew
 * @param {boolean} isUnknown
 */
function fill(beacon, isNew, isUnknown) {
  const mac = macText(beacon.mac);
  const title = isNew ? "Add a beacon" : isUnknown ? `Assign ${mac}` : `Edit ${mac}`;
  setText($("editor-title"), title);
  fieldOf("mac").value = isNew ? "" : mac;
  fieldOf("mac").readOnly = !isNew;
  fieldOf("same").value = "";
  $("same").hidden = isNew;
  fillPlace(beacon);
  inputById("past-too").checked = isUnknown;
  $("past").hidden = isNew;
  warning = "";
  setText($("past-says"), "");
  $("delete").hidden = isNew || isUnknown;
}

/** @param {Beacon} beacon */
function fillPlace(beacon) {
  for (const name of PLACE) fieldOf(name).value = String(beacon[name] ?? "");
  fieldOf("aliases").value = (beacon.aliases ?? []).map(macText).join("\n");
}

/**
 * What is the same beacon as another hangs where that does.
 * @param {Beacon} beacon
 * @param {Beacon | undefined} same
 */
function showSame(beacon, same) {
  const fields = [...PLACE, "aliases"].map(fieldOf);
  const isSame = fields[0].disabled;
  if (same) fillPlace(same);
  else if (isSame) fillPlace(beacon);
  for (const field of fields) field.disabled = Boolean(same);
  for (const field of fields.slice(0, 2)) field.required = !textIn("same");
}

/**
 * @param {Beacon[]} all
 * @param {Beacon[]} others
 */
function suggest(all, others) {
  const lists = {
    "known-levels": all.map((beacon) => String(beacon.level)),
    "known-locations": all.map((beacon) => beacon.location),
  };
  for (const [id, values] of Object.entries(lists))
    keyed(
      $(id),
      [...new Set(values)].sort(compare),
      (value) => value,
      (value) => el("option", { value }),
      () => {},
    );
  keyed(
    $("known-beacons"),
    others,
    ({ mac }) => mac,
    ({ mac }) => el("option", { value: macText(mac) }),
    (option, beacon) => setText(option, placeText(beacon)),
  );
}

/**
 * @param {string[]} aliases
 * @param {(alias: string) => void} split
 */
function drawAliases(aliases, split) {
  $("split").hidden = aliases.length === 0;
  $("split").replaceChildren(
    ...aliases.map((alias) => {
      const label = `Split off ${macText(alias)}`;
      const button = el("button", { type: "button", "aria-label": label }, "Split off");
      button.addEventListener("click", () => split(alias));
      return el("li", {}, el("span", { class: "mac" }, macText(alias)), button);
    }),
  );
}

/** @param {string} mac */
const addressOf = (mac) => `${API}/beacons/${encodeURIComponent(mac)}`;

/**
 * What is to be put when this form is saved.
 * @param {Beacon} edited
 * @param {Beacon[]} others
 * @returns {Wanted}
 */
function wantedIn(edited, others) {
  const isPast = inputById("past-too").checked;
  const other = textIn("same");
  if (other) {
    const same = withId(others, idOf(other));
    if (!same) throw new Error(`No other beacon of the directory has the id ${other}.`);
    const aliases = [...(same.aliases ?? []), ...idsOf(edited)];
    return { mac: same.mac, body: { ...bodyOf(same), aliases }, takes: true, isPast };
  }
  /** @param {string} text */
  const number = (text) => (text === "" ? null : Number(text));
  const body = {
    level: textIn("level"),
    location: textIn("location"),
    x: number(textIn("x")),
    y: number(textIn("y")),
    aliases: idsIn(textIn("aliases")),
  };
  return { mac: idOf(textIn("mac")), body, takes: false, isPast };
}

/** @param {Beacon} beacon */
const bodyOf = ({ level, location, x, y, aliases = [] }) => ({ level, location, x, y, aliases });

/** What the page has told of the past: the address of the question; "" for nothing. */
let warning = "";

/**
 * The question what a correction would change; "" where none is wanted.
 * @param {Wanted} wanted
 */
function question({ mac, body: { level, location, aliases = [] }, isPast }) {
  if (!isPast || !level || !location) return "";
  const then = new URLSearchParams({ level: String(level), location, aliases: aliases.join(" ") });
  return `${addressOf(mac)}/correction?${then}`;
}

/**
 * Says how many past detections of whom would change, before anything does.
 * @param {() => Wanted} wanted
 * @returns {Promise<boolean>} whether this is news
 */
async function foresee(wanted) {
  const asked = question(wanted());
  if (asked === warning) return false;
  setText($("past-says"), asked && "Counting…");
  const text = asked ? changesText(await request(asked), names) : "";
  if (asked === question(wanted())) {
    warning = asked;
    setText($("past-says"), text);
  }
  return Boolean(asked);
}

/**
 * Saves what is in the form.
 * @param {Wanted} wanted
 * @param {Beacon[]} all as the directory was
 * @returns {Promise<Done | null>} null: not yet, as something has to be read first
 */
async function save(wanted, all) {
  if (await foresee(() => wanted)) return null;
  const saved = await put(wanted);
  const but = saved.warning ? ` But ${saved.warning}.` : "";
  const text = `Saved ${macText(saved.mac)}`;
  const before = all.filter((beacon) => idsOf(beacon).some((id) => idsOf(saved).includes(id)));
  const back = () => undo(saved, before);
  if (!wanted.isPast) return { text: `${text}.${but}`, undo: wanted.takes ? back : undefined };
  return {
    text: `${text}, ${saved.corrected.toLocaleString()} past detections are corrected.${but}`,
    undo: back,
  };
}

/**
 * Makes another id of a beacon one of its own, at the same place.
 * @param {Beacon} beacon
 * @param {string} alias
 * @returns {Promise<Done | null>}
 */
async function splitOff(beacon, alias) {
  const asked = `Make ${macText(alias)} a beacon of its own, at ${placeText(beacon)}?`;
  if (!confirm(asked)) return null;
  const body = { ...bodyOf(beacon), aliases: [] };
  const saved = await put({ mac: alias, body, takes: true, isPast: false });
  const text = `${macText(alias)} is a beacon of its own.`;
  return { text, undo: () => undo(saved, [beacon]) };
}

/**
 * @typedef {object} Saved
 * @property {string} mac as the directory writes it
 * @property {string[]} aliases
 * @property {number} corrected
 * @property {string} correction
 * @property {string} [warning]
 */

/**
 * @param {Wanted} wanted
 * @returns {Promise<Saved>}
 */
async function put({ mac, body, takes, isPast }) {
  const query = new URLSearchParams();
  if (takes) query.set("take", "1");
  if (isPast) query.set("correct_past", "1");
  const headers = { "Content-Type": "application/json" };
  const address = `${addressOf(mac)}${query.size ? `?${query}` : ""}`;
  let part = await request(address, { method: "PUT", body: JSON.stringify(body), headers });
  let { corrected } = part;
  const { mac: stored, aliases, correction } = part;
  // Of many past detections each request corrects a part.
  const more = `${addressOf(mac)}/correction?id=${correction}`;
  while ("remaining" in part) {
    part = await request(more, { method: "POST" });
    corrected += part.corrected;
  }
  return { mac: stored, aliases, corrected, correction, warning: part.warning };
}

/**
 * The beacons that there were, or none, first: what is heard from now on has their places.
 * @param {Saved} saved
 * @param {Beacon[]} before those whose ids it has now
 */
async function undo(saved, before) {
  /** @param {boolean} takes */
  const restore = async (takes) => {
    for (const beacon of before)
      await put({ mac: beacon.mac, body: bodyOf(beacon), takes, isPast: false });
  };
  if (!withId(before, saved.mac)) await request(addressOf(saved.mac), { method: "DELETE" });
  await restore(true);
  await restore(false); // each without what the others have again
  if (!saved.correction) return `Undone: ${before.map(idsText).join("; ")} as before.`;
  let undone = 0;
  for (const id of idsOf(saved)) {
    let part;
    do {
      part = await request(`${addressOf(id)}/correction?id=${saved.correction}`, { method: "DELETE" });
      undone += part.undone;
    } while ("remaining" in part);
  }
  return `Undone: ${undone.toLocaleString()} past detections of ${macText(saved.mac)} have their old places.`;
}

/** @typedef {{ text: string, undo?: () => Promise<string> }} Done what to say afterwards */

/**
 * @param {() => Promise<Done | null>} work
 * @param {Changed} changed
 */
async function run(work, changed) {
  const dialog = $("editor", HTMLDialogElement);
  const buttons = dialog.querySelectorAll("button");
  buttons.forEach((button) => (button.disabled = true));
  try {
    const done = await work();
    if (!done) return;
    dialog.close();
    await changed(done.text, done.undo);
  } catch (error) {
    drawProblems($("editor-errors"), errorTexts(error));
  } finally {
    buttons.forEach((button) => (button.disabled = false));
  }
}
