// A list as a CSV file of the rows that are shown, with the cells that the API writes (spreadsheet.py).
/** @import { Names } from "../rules/people/names.js" */
/** @import { Person } from "../rules/people/people_model.js" */
import { buttonById, el } from "../page/dom.js";
import { dateAndTime } from "../page/paper.js";
import { heardText } from "../rules/words.js";

/**
 * What the cell of a column holds.
 * @template T
 * @typedef {Record<string, (row: T) => string | number | null>} Columns
 */

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
// What begins a formula, in full width too, or what a spreadsheet may drop before one; and a quote
// before that, which a reader would drop.
const FORMULA = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20\p{C}\p{Z}]/u;
const STATES = { acknowledged: "seen to", gone_home: "gone home" };
const MARK = "\ufeff"; // by which a spreadsheet knows UTF-8

/**
 * Makes a button save the list that is shown when it is clicked.
 * @template T
 * @param {string} id of the button
 * @param {() => { name: string, at: number, columns: Columns<T>, rows: T[], complete: boolean }} list
 *   `at`: unix seconds, in the name of the file, as is a list that is not complete
 */
export function offerCsv(id, list) {
  const button = buttonById(id);
  button.disabled = false;
  button.addEventListener("click", () => {
    const { name, at, columns, rows, complete } = list();
    const time = dateAndTime(at).slice(0, 16).replace(" ", "_");
    const words = `${name} ${complete ? "" : "incomplete"}`.match(/[\p{L}\p{N}]+/gu) ?? [];
    save(`${words.join("-")}_${time.replace(":", "")}.csv`, csv(columns, rows));
  });
}

/**
 * A time as two columns: in UTC, and in the viewer's zone, which the head names.
 * @template T
 * @param {string} name
 * @param {(row: T) => number | null} of unix seconds
 * @returns {Columns<T>}
 */
export const timeColumns = (name, of) => ({
  [name]: (row) => written(of(row), utc),
  [`local_${name} (${ZONE})`]: (row) => written(of(row), local),
});

/**
 * Who somebody is: their id, and what the office says of them.
 * @template T
 * @param {(row: T) => string} of their id
 * @param {Names} names
 * @returns {Columns<T>}
 */
export const nameColumns = (of, names) => ({
  staff_id: of,
  name: (row) => names.of(of(row))?.name ?? null,
  team: (row) => names.of(of(row))?.team ?? null,
});

/**
 * @param {number} blindSince 0 while the page sees
 * @param {Names} names
 * @returns {Columns<Person>}
 */
export const personColumns = (blindSince, names) => ({
  ...nameColumns((person) => person.id, names),
  ...timeColumns("time", (person) => person.heardAt),
  level: (person) => person.level,
  location: (person) => person.location,
  mac: (person) => person.mac,
  heard: (person) => heardText(person.heardAt, person.age, blindSince),
  lost_contact: ({ lost_contact: said }) => (said ? STATES[said.state] : null),
  said_by: (person) => person.lost_contact?.by ?? null,
  ...timeColumns("said", (person) => person.lost_contact?.at ?? null),
});

/**
 * @param {number | null} seconds
 * @param {(seconds: number) => string} write
 */
const written = (seconds, write) => (seconds === null ? null : write(Math.floor(seconds)));

/** @param {number} seconds */
const utc = (seconds) => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

/**
 * With its distance from UTC.
 * @param {number} seconds
 */
function local(seconds) {
  const minutes = -new Date(seconds * 1000).getTimezoneOffset();
  const distance = utc(Math.abs(minutes) * 60).slice(11, 16);
  return `${utc(seconds + minutes * 60).slice(0, -1)}${minutes < 0 ? "-" : "+"}${distance}`;
}

/**
 * @template T
 * @param {Columns<T>} columns
 * @param {T[]} rows
 */
function csv(columns, rows) {
  const made = rows.map((row) => Object.values(columns).map((of) => of(row)));
  const lines = [Object.keys(columns), ...made].map((cells) => `${cells.map(cell).join(",")}\r\n`);
  const file = lines.join("");
  return /[^ -~\r\n]/.test(file) ? MARK + file : file;
}

/** @param {string | number | null} value */
function cell(value) {
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * @param {string} download the file's name
 * @param {string} file
 */
function save(download, file) {
  const href = URL.createObjectURL(new Blob([file], { type: "text/csv" }));
  el("a", { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // long after the browser has taken it
}
