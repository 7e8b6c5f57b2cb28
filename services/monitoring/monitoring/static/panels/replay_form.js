// The form of Replay: whom to show, from when to when; and the downloads of the same.
/** @import { Range } from "./timeline.js" */
import { $, el, inputById, keyed, setAttribute } from "../page/dom.js";
import { DOWNLOADS } from "../page/shell.js";
import { secondsOf, setSeconds } from "../page/time_field.js";
import { compare } from "../rules/words.js";

/** @returns {{ id: string, range: Range }} */
export const readForm = () => ({
  id: inputById("person").value.trim(),
  range: { from: secondsOf("from"), to: secondsOf("to") },
});

/**
 * What is wrong with the form; "" when nothing is.
 * @param {string} id
 * @param {Range} range
 */
export function formProblem(id, range) {
  if (!id) return "Choose a person.";
  return range.from < range.to ? "" : "The end must be after the beginning.";
}

/** @param {Range} range */
export function setRange({ from, to }) {
  setSeconds("from", from);
  setSeconds("to", to);
}

/**
 * Everybody ever heard, to choose from.
 * @param {StaffMember[]} staff
 */
export function drawNames(staff) {
  keyed(
    $("names"),
    staff.map((one) => String(one.staff_id)).sort(compare),
    (id) => id,
    (id) => el("option", { value: id }, `Staff ${id}`),
    () => {},
  );
}

/**
 * The server names the files.
 * @param {string} id "" for no downloads
 * @param {Range} range
 */
export function drawDownloads(id, { from, to }) {
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
  for (const format of ["csv", "geojson"]) {
    const url = `${DOWNLOADS}/staff/${encodeURIComponent(id)}/detections?from=${from}&to=${to}&format=${format}&zone=${zone}`;
    const link = $(`download-${format}`);
    setAttribute(link, "aria-disabled", id ? null : "true");
    setAttribute(link, "href", id ? url : null);
  }
}
