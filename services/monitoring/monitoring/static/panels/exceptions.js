// The column of a wall screen: what needs somebody, as much of it as fits.
import { $, el, keyed, setText } from "../page/dom.js";

/**
 * One line: what, where, how long; one that is done does not count.
 * @typedef {{ key: string, what: string, where: string, age: string, isDone?: boolean }} Line
 *
 * @typedef {object} Exception
 * @property {string} name the id of its section
 * @property {Line[] | null} lines null: it cannot be told now
 * @property {string} none what is said when there are none
 */

/** @param {Exception[]} exceptions */
export function drawExceptions(exceptions) {
  for (const { name, lines, none } of exceptions) {
    const [title, list, note] = $(name).children;
    const count = lines ? String(lines.filter((line) => !line.isDone).length) : "";
    setText(title.children[0], count || "?");
    keyed(
      list,
      lines ?? [],
      (line) => line.key,
      () => el("li", {}, el("span", {}, el("strong"), " ", el("span")), el("span")),
      (row, line) => {
        const [place, age] = row.children;
        setText(place.children[0], line.what);
        setText(place.children[1], line.where);
        setText(age, line.age);
      },
    );
    $(name).dataset.count = count;
    setText(note, lines ? (lines.length ? "" : none) : "This cannot be told now.");
  }
  fit($("exceptions"));
}

/**
 * Hides the last lines of the longest lists until the column fits, and says how many.
 * @param {HTMLElement} column
 */
function fit(column) {
  const sections = [...column.children].map(({ children: [, list, note] }) => ({
    note,
    rows: [...list.children],
    shown: list.children.length,
  }));
  for (const { rows } of sections) for (const row of rows) row.toggleAttribute("hidden", false);
  while (column.scrollHeight > column.clientHeight + 1) {
    const longest = sections.reduce((section, other) => (other.shown > section.shown ? other : section));
    if (!longest.shown) return;
    longest.shown -= 1;
    longest.rows[longest.shown].toggleAttribute("hidden", true);
    setText(longest.note, `and ${longest.rows.length - longest.shown} more`);
  }
}
