// The column of a wall screen: what needs somebody, as much of it as fits.
import { $, el, keyed, setText } from "../page/dom.js";

/**
 * One line: what, where, how long.
 * @typedef {{ key: string, what: string, where: string, age: string }} Line
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
    setText(title.children[0], lines ? String(lines.length) : "?");
    keyed(
      list,
      lines ?? [],
      (one) => one.key,
      () => el("li", {}, el("span", {}, el("strong"), " ", el("span")), el("span")),
      (row, one) => {
        const [place, age] = row.children;
        setText(place.children[0], one.what);
        setText(place.children[1], one.where);
        setText(age, one.age);
      },
    );
    $(name).dataset.count = lines ? String(lines.length) : "";
    setText(note, lines ? (lines.length ? "" : none) : "This cannot be told now.");
  }
  fit($("exceptions"));
}

/**
 * Hides the last lines of the longest lists until the column fits, and says how many.
 * @param {HTMLElement} column
 */
function fit(column) {
  const lists = [...column.querySelectorAll("ul")];
  for (const list of lists) for (const row of list.children) row.toggleAttribute("hidden", false);
  for (;;) {
    const shown = lists.map((list) => [...list.children].filter((row) => !row.hasAttribute("hidden")));
    lists.forEach((list, index) => {
      const left = list.children.length - shown[index].length;
      if (left) setText(list.nextElementSibling ?? list, `and ${left} more`);
    });
    const longest = shown.reduce((one, other) => (other.length > one.length ? other : one), []);
    if (!longest.length || column.scrollHeight <= column.clientHeight + 1) return;
    longest[longest.length - 1].toggleAttribute("hidden", true);
  }
}
