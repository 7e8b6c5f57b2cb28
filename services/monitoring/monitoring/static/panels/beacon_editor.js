// The dialog in which one beacon is added, edited, assigned or deleted.
import { $, buttonById, el, keyed, setText } from "../page/dom.js";
import { request } from "../page/request.js";
import { API } from "../page/shell.js";
import { compare, macText } from "../rules/words.js";
import { drawProblems, errorTexts, openDialog } from "./dialog.js";

/**
 * @typedef {object} Editing
 * @property {boolean} [isUnknown] the beacon was heard, but is in no directory: its past detections
 *   may be corrected
 * @property {Beacon[]} all for suggestions
 * @property {HTMLElement} opener
 * @property {(text: string) => unknown} changed called with what was done
 */

/** @param {string} name of a field of the form */
function fieldOf(name) {
  const field = $("editor").querySelector(`[name="${name}"]`);
  if (!(field instanceof HTMLInputElement)) throw new Error(`no such field: ${name}`);
  return field;
}

const macInForm = () =>
  fieldOf("mac")
    .value.replaceAll(/[:\s-]/g, "")
    .toUpperCase();

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
    const isPast = fieldOf("past").checked;
    const done = `Saved ${macText(macInForm())}${isPast ? ", past detections are corrected" : ""}.`;
    run(() => save(isPast), done, changed);
  };
  buttonById("delete").onclick = () => {
    const question = `Delete ${macText(beacon.mac)}, ${beacon.location}? Its past detections keep their place.`;
    if (!confirm(question)) return;
    const remove = () => request(`${API}/beacons/${beacon.mac}`, { method: "DELETE" });
    run(remove, `Deleted ${macText(beacon.mac)}.`, changed);
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
  $("delete").hidden = isNew || isUnknown;
}

/** @param {Beacon[]} all */
function suggest(all) {
  const lists = {
    "known-levels": all.map((one) => String(one.level)),
    "known-locations": all.map((one) => one.location),
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

/** @param {boolean} isPast whether past detections are corrected as well */
async function save(isPast) {
  /** @param {string} text */
  const number = (text) => (text.trim() === "" ? null : Number(text));
  const body = JSON.stringify({
    level: fieldOf("level").value.trim(),
    location: fieldOf("location").value.trim(),
    x: number(fieldOf("x").value),
    y: number(fieldOf("y").value),
  });
  const url = `${API}/beacons/${encodeURIComponent(macInForm())}`;
  const headers = { "Content-Type": "application/json" };
  const query = isPast ? "?correct_past=1" : "";
  let saved = await request(url + query, { method: "PUT", body, headers });
  // Of many past detections each request corrects a part.
  while ("remaining" in saved) saved = await request(`${url}/correction`, { method: "POST" });
  return saved.warning;
}

/**
 * @param {() => Promise<unknown>} work
 * @param {string} done what to say afterwards
 * @param {(text: string) => unknown} changed
 */
async function run(work, done, changed) {
  const dialog = $("editor", HTMLDialogElement);
  const buttons = dialog.querySelectorAll("button");
  buttons.forEach((button) => (button.disabled = true));
  try {
    const warning = await work();
    dialog.close();
    await changed(warning ? `${done} But ${warning}.` : done);
  } catch (error) {
    drawProblems($("editor-errors"), errorTexts(error));
  } finally {
    buttons.forEach((button) => (button.disabled = false));
  }
}
