// The form of Replay: whom to show, from when to when; and the downloads of the same.
/** @import { Range } from "../../rules/histories/day_ranges.js" */
import { $, el, inputById, keyed, selectById, setAttribute } from "../../page/dom.js";
import { DOWNLOADS } from "../../page/shell.js";
import { secondsOf, setSeconds } from "../../page/time_field.js";
import { around, hourFrom, hoursOfDay } from "../../rules/histories/day_ranges.js";
import { staffIdOf, staffIdsOf } from "../../rules/people/people_search.js";
import { clock, compare } from "../../rules/words.js";
import { MAX_COMPANIONS } from "./companions.js";

/**
 * `moment`: the time that is asked for, also by a range without any length; NaN: none. A range that
 * does not have it gives way to what is around it.
 * @returns {{ id: string, others: string[], range: Range, moment: number }}
 */
export function readForm() {
  const id = staffIdOf(inputById("person").value);
  const others = new Set(staffIdsOf(inputById("with").value).filter((other) => other !== id));
  const range = { from: secondsOf("from"), to: secondsOf("to") };
  const moment = secondsOf("at") || (range.from === range.to ? range.from : NaN);
  const isOutside = moment < range.from || moment > range.to || range.from === range.to;
  return { id, others: [...others], range: isOutside ? around(moment) : range, moment };
}

/**
 * What is wrong with the form; "" when nothing is.
 * @param {{ id: string, others: string[], range: Range }} form
 */
export function formProblem({ id, others, range }) {
  if (!id) return "Choose a person.";
  if (others.length > MAX_COMPANIONS)
    return `${others.length} others are too many: choose up to ${MAX_COMPANIONS}.`;
  return range.from < range.to ? "" : "The end must be after the beginning.";
}

/** @param {Range} range */
export function setRange(range) {
  setSeconds("at", NaN); // what was asked for is shown, and the range holds from now on
  setSeconds("from", range.from);
  setSeconds("to", range.to);
  drawHours(range);
}

/**
 * The hours of the day that is shown, to choose from.
 * @param {Range} range
 */
function drawHours({ from, to }) {
  const today = new Date(from * 1000); // the field beside it tells the day
  const hours = Number.isNaN(today.getTime()) ? [] : hoursOfDay(from);
  const options = hours.map((start) =>
    el("option", { value: start }, clock(start, { seconds: false, today })),
  );
  const field = selectById("hour");
  field.replaceChildren(el("option", { value: "" }, "–"), ...options);
  const isHour = hours.includes(from) && hourFrom(from).to === to;
  field.value = isHour ? String(from) : "";
}

/**
 * Everybody ever heard, to choose from.
 * @param {StaffMember[]} staff
 */
export function drawNames(staff) {
  keyed(
    $("names"),
    staff.map((person) => String(person.staff_id)).sort(compare),
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
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  const zone = own === "Etc/Unknown" ? "" : encodeURIComponent(own); // a machine that has none
  for (const format of ["csv", "geojson"]) {
    const url = `${DOWNLOADS}/staff/${encodeURIComponent(id)}/detections?from=${from}&to=${to}&format=${format}&zone=${zone}`;
    const link = $(`download-${format}`);
    setAttribute(link, "aria-disabled", id ? null : "true");
    setAttribute(link, "href", id ? url : null);
  }
}
