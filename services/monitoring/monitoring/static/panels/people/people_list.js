// The list of Live: searched, sorted, and calm while somebody looks at it.
/** @import { Source } from "../../page/source.js" */
/** @import { Person } from "../../rules/people/people_model.js" */
import { parameter } from "../../page/address.js";
import { $, el, isKeyed, keyed, setAttribute, setText, showWithin } from "../../page/dom.js";
import { callBy, namesState } from "../../page/people.js";
import { whoseText } from "../../page/team.js";
import { updateTime } from "../../page/time_element.js";
import { byFloor, isOffDuty } from "../../rules/people/people_model.js";
import {
  compare,
  heardText,
  isComplete,
  levelText,
  levelTitle,
  spotText,
} from "../../rules/words.js";

/** @type {Record<string, (one: Person, other: Person) => number>} */
const ORDERS = {
  name: (person, other) => person.order - other.order,
  heard: (person, other) => other.heardAt - person.heardAt || person.order - other.order,
  level: (person, other) =>
    byFloor(person, other) ||
    compare(spotText(person), spotText(other)) ||
    person.order - other.order,
};

/** The order that the address asks for. */
export const orderName = () => (ORDERS[parameter("sort")] ? parameter("sort") : "name");

const MAX_ROWS = 500;
let shownView = "";

/**
 * Those of the list, in its order: everybody on a level ("" for all) whom the search finds.
 * @param {Person[]} all
 * @param {string} level
 */
export function listed(all, level) {
  const order = ORDERS[orderName()];
  return all
    .filter((person) => (!level || person.level === level) && !person.dimmed)
    .sort((person, other) => Number(person.gone) - Number(other.gone) || order(person, other));
}

/**
 * @param {Source<StaffAnswer>} staff
 * @param {Person[]} all
 * @param {string} level "" for all
 * @param {string} team the same
 * @param {(id: string) => void} choose called with the person to show, or ""
 */
export function drawPeopleList(staff, all, level, team, choose) {
  const search = parameter("q").trim();
  const shown = listed(all, level);
  const list = $("people");
  if (staff.data || staff.failure)
    list.querySelectorAll(".skeleton").forEach((row) => row.remove());
  if (staff.data) {
    // Rows do not move away from under a pointer or the focus.
    const isBusy = list.matches(":hover") || list.contains(document.activeElement);
    keyed(
      list,
      shown.slice(0, MAX_ROWS),
      (person) => person.id,
      (person) => createRow(person.id, choose),
      (row, person) => updateRow(row, person, staff.failure),
      { reorder: !isBusy || !isKeyed(list) },
    );
    const chosen = list.querySelector("[aria-pressed='true']");
    // Once the details have made the list lower, and again in the order of names.
    const view = chosen && !$("person").hidden ? `${chosen.getAttribute("data-staff")} ${namesState}` : "";
    if (chosen && view && view !== shownView) showWithin(list, chosen);
    shownView = view;
  }
  const text = emptyText(staff, all, shown, whoseText(team) + (level && ` on ${levelText(level)}`), search);
  $("nobody").hidden = !text;
  if (text) setText($("nobody"), text);
}

/**
 * Why the list is empty; "" when it is not.
 * @param {Source<StaffAnswer>} staff
 * @param {Person[]} all
 * @param {Person[]} shown
 * @param {string} where
 * @param {string} search
 */
function emptyText(staff, all, shown, where, search) {
  if (!staff.data) return staff.failure ? "Positions cannot be told now." : "";
  if (shown.length > MAX_ROWS) return `Only the first ${MAX_ROWS} are listed.`;
  if (shown.length > 0) return "";
  if (!isComplete(staff.data)) return `Whether anybody else is${where || " there"} cannot be told now.`;
  if (all.length === 0 && !where) return "";
  return search ? `Nobody matches “${search}”${where}.` : `Nobody${where} was heard.`;
}

/**
 * @param {string} id
 * @param {(id: string) => void} choose
 */
function createRow(id, choose) {
  const button = el(
    "button",
    { type: "button", class: "row" },
    el("span", { class: "mark", "aria-hidden": "true" }),
    callBy(el("span", { class: "who" }), id),
    el("span", { class: "where" }),
    el("span", { class: "floor-name" }),
    el("time", { class: "heard" }),
  );
  button.addEventListener("click", () =>
    choose(button.getAttribute("aria-pressed") === "true" ? "" : id),
  );
  button.addEventListener("keydown", (event) => {
    const to = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const row = to && /** @type {any} */ (button.parentElement)?.[to]?.firstElementChild;
    if (!row) return;
    event.preventDefault();
    row.focus();
  });
  return el("li", {}, button);
}

/**
 * @param {Element} row
 * @param {Person} person
 * @param {unknown} blind
 */
function updateRow(row, person, blind) {
  const button = row.children[0];
  const [mark, , where, floorName, heard] = button.children;
  setAttribute(button, "data-staff", person.id);
  setAttribute(button, "aria-pressed", person.picked);
  setAttribute(button, "class", `row ${person.gone ? "gone" : person.fresh}`);
  setAttribute(mark, "class", `mark ${person.fresh}`);
  const remarks = [isOffDuty(person) && "off duty", person.clock && `the phone's clock is ${person.clock}`];
  setText(where, [spotText(person), ...remarks].filter(Boolean).join("; "));
  setText(floorName, levelTitle(person.level));
  updateTime(heard, person.heardAt, heardText(person.heardAt, person.age, blind));
}
