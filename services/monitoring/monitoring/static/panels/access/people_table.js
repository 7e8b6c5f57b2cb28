// Access: the table of the people who may log in.
import { $, el, keyed, setText } from "../../page/dom.js";
import { updateTime } from "../../page/time_element.js";
import { minute } from "../../rules/access/access_words.js";

/**
 * @param {Person[]} people
 * @param {string} own the name of who looks at it
 * @param {(name: string, opener: HTMLElement) => void} edit
 */
export function drawPeople(people, own, edit) {
  setText($("people-count"), String(people.length));
  $("people").hidden = people.length === 0;
  $("no-people").hidden = people.length > 0;
  keyed(
    $("people", HTMLTableElement).tBodies[0],
    people,
    (person) => person.name,
    (person) => createRow(person.name, edit),
    (row, person) => updateRow(row, person, own),
  );
}

/**
 * @param {string} name
 * @param {(name: string, opener: HTMLElement) => void} edit
 */
function createRow(name, edit) {
  /** @type {HTMLButtonElement} */
  const button = el(
    "button",
    {
      type: "button",
      class: "edit",
      "aria-label": `Edit ${name}`,
      onclick: () => edit(name, button),
    },
    "Edit",
  );
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("span"), el("span", { class: "by quiet" })),
    el("td"),
    el("td", { "data-name": "Made" }, el("time")),
    el("td", { class: "actions" }, button),
  );
}

/**
 * @param {Element} row
 * @param {Person} person
 * @param {string} own
 */
function updateRow(row, person, own) {
  const [name, role, made] = row.children;
  setText(name.children[0], person.name === own ? `${person.name} (you)` : person.name);
  setText(name.children[1], person.provider ? `logs in at ${person.provider}` : "");
  setText(role, person.role);
  updateTime(made.children[0], person.created_at, minute(person.created_at));
}
