// The list of visits on paper, as evidence: who, when, in which zone of time, and where.
/** @import { Range } from "../../rules/histories/day_ranges.js" */
/** @import { Visit } from "../../rules/histories/visits.js" */
import { $, buttonById, el, setText } from "../../page/dom.js";
import { dateAndTime } from "../../page/paper.js";
import { names } from "../../page/people.js";
import { duration, levelText, spotText } from "../../rules/words.js";

/**
 * @typedef {object} Printed
 * @property {string} id
 * @property {Range} range
 * @property {Visit[]} visits the oldest first
 * @property {string} note what is missing in them
 */

/**
 * Fills the paper when it is printed, by the button or by the browser's menu.
 * @param {() => Printed} shown
 * @param {() => number} now the server's unix seconds
 */
export function offerPrinting(shown, now) {
  addEventListener("beforeprint", () => draw(shown(), now()));
  buttonById("print").addEventListener("click", () => window.print());
}

/**
 * @param {Printed} shown
 * @param {number} now
 */
function draw({ id, range, visits, note }, now) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const person = names.of(id);
  const who = [person?.name, `staff ${id}`, person?.team].filter(Boolean).join(", ");
  setText($("printed-title"), `Visits of ${who}`);
  const span = `${dateAndTime(range.from)} to ${dateAndTime(range.to)}`;
  setText($("printed-range"), `${span} (${timeZone}). Printed ${dateAndTime(now)}. ${note}`.trim());
  const rows = visits.map((visit) =>
    el(
      "tr",
      {},
      ...[dateAndTime(visit.from), dateAndTime(visit.to), duration(visit.to - visit.from)].map(cell),
      ...[levelText(visit.level), spotText(visit), String(visit.count)].map(cell),
    ),
  );
  $("printed-visits").replaceChildren(...rows);
}

/** @param {string} text */
const cell = (text) => el("td", {}, text);
