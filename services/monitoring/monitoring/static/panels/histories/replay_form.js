// The form of Replay: whom to show, from when to when; and the downloads of the same.
/** @import { Range } from "../../rules/histories/day_ranges.js" */
import { parameter } from "../../page/address.js";
import { $, el, inputById, keyed, selectById, setAttribute, setText } from "../../page/dom.js";
import { names } from "../../page/people.js";
import { DOWNLOADS } from "../../page/shell.js";
import { isOf } from "../../page/team.js";
import { secondsOf, setSeconds } from "../../page/time_field.js";
import { around, hourFrom, hoursOfDay } from "../../rules/histories/day_ranges.js";
import { idsMeant, severalMeant } from "../../rules/people/people_meant.js";
import { clock, peopleText } from "../../rules/words.js";
import { MAX_COMPANIONS } from "./companions.js";

const MAX_CHOICES = 8;

/** The ids of everybody ever heard. @type {ReadonlySet<string>} */
let heard = new Set();

/** What the page itself wrote into a field, of whom. @type {Map<string, { value: string, ids: string[] }>} */
const written = new Map();

/**
 * Whom of several somebody means; `choose` puts one of them into the form.
 * @typedef {{ text: string, choices: string[], choose: (id: string) => void }} Question
 */

/**
 * @param {"person" | "with"} field
 * @param {string[]} ids
 */
export function writePeople(field, ids) {
  const texts = ids.map((id) => (names.of(id) ? names.called(id) : id));
  const value = texts.join(ids.some((id) => names.of(id)) ? ", " : " ");
  inputById(field).value = value;
  written.set(field, { value, ids });
}

/**
 * @param {"person" | "with"} field
 * @returns {{ ids: string[], question: Question | null }}
 */
function readPeople(field) {
  const { value } = inputById(field);
  const own = written.get(field);
  const isOwn = own?.value === value && own.ids.every((id) => names.of(id) || heard.has(id));
  if (isOwn) return { ids: own.ids, question: null };
  const meant =
    field === "person"
      ? [{ text: value, ids: idsMeant(value, names, heard) }]
      : severalMeant(value, names, heard);
  const isShown = isOf(parameter("team"));
  for (const typed of meant) if (typed.ids.some(isShown)) typed.ids = typed.ids.filter(isShown);
  const open = meant.find(({ ids }) => ids.length > 1);
  if (!open) return { ids: meant.map(({ ids: [id] }) => id), question: null };
  const count = open.ids.length;
  const type = count > MAX_CHOICES ? " Choose one, or type more of the name." : " Which one?";
  const choose = (/** @type {string} */ id) => {
    const chosen = meant.map((typed) => ({ ...typed, ids: typed === open ? [id] : typed.ids }));
    if (chosen.every(({ ids }) => ids.length === 1)) writePeople(field, chosen.map(({ ids }) => ids[0]));
    else inputById(field).value = chosen.map(({ text, ids }) => (ids.length > 1 ? text : ids[0])).join(", ");
  };
  const text = `“${open.text.trim()}” may be ${peopleText(count)}.${type}`;
  return { ids: [], question: { text, choices: open.ids.slice(0, MAX_CHOICES), choose } };
}

/**
 * `moment`: the time that is asked for, also by a range without any length; NaN: none. A range that
 * does not have it gives way to what is around it.
 * @returns {{ id: string, others: string[], range: Range, moment: number, question: Question | null }}
 */
export function readForm() {
  const person = readPeople("person"),
    companions = readPeople("with");
  const id = person.ids[0] ?? "";
  const others = new Set(companions.ids.filter((other) => other !== id));
  const range = { from: secondsOf("from"), to: secondsOf("to") };
  const moment = secondsOf("at") || (range.from === range.to ? range.from : NaN);
  const isOutside = moment < range.from || moment > range.to || range.from === range.to;
  return {
    id,
    others: [...others],
    range: isOutside ? around(moment) : range,
    moment,
    question: person.question ?? companions.question,
  };
}

/**
 * What is wrong with the form; "" when nothing is.
 * @param {{ id: string, others: string[], range: Range, question: Question | null }} form
 */
export function formProblem({ id, others, range, question }) {
  if (question) return question.text;
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
 * @param {string} team "" for all
 */
export function drawNames(staff, team) {
  const ids = staff.map((person) => String(person.staff_id)).filter(isOf(team));
  heard = new Set(staff.map((person) => String(person.staff_id)));
  keyed(
    $("names"),
    ids.sort(names.compare),
    (id) => id,
    () => el("option"),
    (option, id) => {
      const person = names.of(id);
      setAttribute(option, "value", person ? names.called(id) : id);
      setText(option, person ? [`staff ${id}`, person.team].filter(Boolean).join(", ") : `Staff ${id}`);
    },
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
  for (const link of document.querySelectorAll("[id^=download-]")) {
    const format = link.id.replace("download-", "");
    const url = `${DOWNLOADS}/staff/${encodeURIComponent(id)}/detections?from=${from}&to=${to}&format=${format}&zone=${zone}&names=1`;
    setAttribute(link, "aria-disabled", id ? null : "true");
    setAttribute(link, "href", id ? url : null);
  }
}
