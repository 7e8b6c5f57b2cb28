// The levels as tabs, each with a count. The level that is shown stands in the address.
import { addressWith } from "../../page/address.js";
import { $, el, keyed, setAttribute, setText } from "../../page/dom.js";
import { levelTitle } from "../../rules/words.js";

let current = "";

/**
 * @param {string[]} levels
 * @param {string} level the one that is shown, "" for all
 * @param {object} tabs of a level, and of "" for all
 * @param {(level: string) => string} tabs.count
 * @param {(level: string) => string} tabs.title
 * @param {(level: string) => void} tabs.choose
 */
export function drawLevelTabs(levels, level, { count, title, choose }) {
  /** @param {string} name */
  const create = (name) =>
    el(
      "a",
      { class: "tab", onclick: (event) => follow(event, () => choose(name)) },
      el("span"),
      el("span", { class: "count" }),
    );
  keyed(
    $("levels"),
    ["", ...levels],
    (name) => name,
    create,
    (tab, name) => {
      setAttribute(tab, "href", addressWith({ level: name }));
      setAttribute(tab, "aria-current", name === level ? "true" : null);
      setAttribute(tab, "title", title(name));
      setText(tab.children[0], name ? levelTitle(name) : "All levels");
      setText(tab.children[1], count(name));
    },
  );
  if (level !== current) {
    const tab = $("levels").querySelector("[aria-current]");
    tab?.scrollIntoView({ block: "nearest", inline: "center" });
  }
  current = level;
}

/**
 * A click without Ctrl, Meta or Shift changes the screen in place; with one the browser opens the link.
 * @param {MouseEvent} event
 * @param {() => void} choose
 */
function follow(event, choose) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose();
}
