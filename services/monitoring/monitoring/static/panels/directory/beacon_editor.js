// The dialog in which one beacon is added, edited, assigned or deleted.
import { $, buttonById, el, keyed, setText } from "../../page/dom.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { changesText } from "../../rules/directory/corrections.js";
import { compare, macText } from "../../rules/words.js";
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

/** @param {string} name of a field of the form */
function fieldOf(name) {
  const field = $("editor").querySelector(`[name="${name}"]`);
  if (!(field instanceof HTMLInputElement)) throw new Error(`no such field: ${name}`);
  return field;
}

function macInForm() {
  const text = fieldOf("mac").value.trim();
  const digits = text.replaceAll(/[:\s-]/g, "").toUpperCase();
  return /^[0-9A-F]{12}$/.test(digits) ? digits : text;
}

/**
 * @param {Beacon} beacon without a MAC: a new one
 * @param {Editing} editing
 */
export function openEditor(beacon, { isUnknown = false, all, opener, changed }) {
  const isNew = !beacon.mac;
  fill(beacon, isNew, isUnknown);
  suggest(all);
  drawProblems($("editor-errors"), []);
  const form = $("editor-form", HTMLFormElement);
  form.onsubmit = (event) => {
    event.preventDefault();
    const existing = all.find((candidate) => candidate.mac === macInForm()) ?? null;
    run(() => save(existing), changed);
  };
  // What cannot be counted now is told when it is to be saved.
  const look = () => void foresee().catch(() => setText($("past-says"), ""));
  form.onchange = look;
  look();
  buttonById("delete").onclick = () => {
    const question = `Delete ${macText(beacon.mac)}, ${beacon.location}? Its past detections keep their place.`;
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
  for (const name of /** @type {const} */ (["level", "location", "x", "y"]))
    fieldOf(name).value = String(beacon[name] ?? "");
  fieldOf("past").checked = isUnknown;
  $("past").hidden = isNew;
  warning = "";
  setText($("past-says"), "");
  $("delete").hidden = isNew || isUnknown;
}

/** @param {Beacon[]} all */
function suggest(all) {
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
}

/** @param {string} mac */
const addressOf = (mac) => `${API}/beacons/${encodeURIComponent(mac)}`;

/** What the page has told of the past: the address of the question; "" for nothing. */
let warning = "";

/** The question what a correction would change; "" where none is wanted. */
function question() {
  const place = { level: fieldOf("level").value.trim(), location: fieldOf("location").value.trim() };
  if (!fieldOf("past").checked || !place.level || !place.location) return "";
  return `${addressOf(macInForm())}/correction?${new URLSearchParams(place)}`;
}

/**
 * Says how many past detections of whom would change, before anything does.
 * @returns {Promise<boolean>} whether this is news
 */
async function foresee() {
  const asked = question();
  if (asked === warning) return false;
  setText($("past-says"), asked && "Counting…");
  const text = asked ? changesText(await request(asked)) : "";
  if (asked === question()) {
    warning = asked;
    setText($("past-says"), text);
  }
  return Boolean(asked);
}

/**
 * Saves what is in the form.
 * @param {Beacon | null} existing as it was in the directory
 * @returns {Promise<Done | null>} null: not yet, as something has to be read first
 */
async function save(existing) {
  if (await foresee()) return null;
  const mac = macInForm(),
    isPast = fieldOf("past").checked;
  /** @param {string} text */
  const number = (text) => (text.trim() === "" ? null : Number(text));
  const saved = await put(mac, isPast, {
    level: fieldOf("level").value.trim(),
    location: fieldOf("location").value.trim(),
    x: number(fieldOf("x").value),
    y: number(fieldOf("y").value),
  });
  const but = saved.warning ? ` But ${saved.warning}.` : "";
  const text = `Saved ${macText(saved.mac)}`;
  if (!isPast) return { text: `${text}.${but}` };
  return {
    text: `${text}, ${saved.corrected.toLocaleString()} past detections are corrected.${but}`,
    undo: () => undo(mac, existing, saved.correction),
  };
}

/**
 * @param {string} mac
 * @param {boolean} isPast whether past detections are corrected as well
 * @param {Omit<Beacon, "mac">} place
 * @returns {Promise<{ mac: string, corrected: number, correction: string, warning?: string }>}
 */
async function put(mac, isPast, place) {
  const query = isPast ? "?correct_past=1" : "";
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify(place);
  let part = await request(addressOf(mac) + query, { method: "PUT", body, headers });
  let { corrected } = part;
  const { mac: stored, correction } = part; // as the directory writes it
  // Of many past detections each request corrects a part.
  const more = `${addressOf(mac)}/correction?id=${correction}`;
  while ("remaining" in part) {
    part = await request(more, { method: "POST" });
    corrected += part.corrected;
  }
  return { mac: stored, corrected, correction, warning: part.warning };
}

/**
 * The beacon's old place, or none, first: what is heard from now on has it.
 * @param {string} mac
 * @param {Beacon | null} existing
 * @param {string} correction
 */
async function undo(mac, existing, correction) {
  if (existing) {
    const { level, location, x, y } = existing;
    await put(mac, false, { level, location, x, y });
  } else await request(addressOf(mac), { method: "DELETE" });
  let undone = 0;
  let part;
  do {
    part = await request(`${addressOf(mac)}/correction?id=${correction}`, { method: "DELETE" });
    undone += part.undone;
  } while ("remaining" in part);
  return `Undone: ${undone.toLocaleString()} past detections of ${macText(mac)} have their old places.`;
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
