// Who dropped out: a chip with their number, and a list of who, where last, how long ago. A viewer
// dismisses whom they know of; their browser keeps that.
/** @import { Dismissed } from "../rules/lost_contact.js" */
/** @import { Person } from "../rules/people_model.js" */
import { $, buttonById, el, keyed, setAttribute, setText } from "../page/dom.js";
import { remember, remembered } from "../page/remembered.js";
import { updateTime } from "../page/time_element.js";
import { lostContact, withDismissed } from "../rules/lost_contact.js";
import { duration, heardText, levelText, peopleText, spotText } from "../rules/words.js";

const KEY = "dismissed";

/** @returns {Dismissed} */
function dismissed() {
  try {
    return JSON.parse(remembered(KEY) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

export class LostContact {
  /** @type {Person[]} */
  #all = [];
  /** @type {Person[]} */
  #lost = [];

  /**
   * @param {(id: string) => void} choose called with the person to show
   * @param {() => void} changed called when somebody was dismissed
   */
  constructor(choose, changed) {
    this.choose = choose;
    this.changed = changed;
    buttonById("lost-chip").addEventListener("click", () => this.#open($("lost").hidden));
    buttonById("lost-dismiss").addEventListener("click", () => this.#dismiss(this.#lost));
  }

  /**
   * @param {Person[]} all
   * @param {unknown} blind
   * @returns {Set<Person>} who is lost, and not dismissed
   */
  show(all, blind) {
    this.#all = all;
    this.#lost = lostContact(all, dismissed());
    const count = this.#lost.length;
    const text = count ? `${peopleText(count)} lost contact` : "";
    buttonById("lost-chip").hidden = count === 0;
    setText(buttonById("lost-chip"), text);
    setText($("lost-says"), text); // a screen reader says it when it changes
    if (!count) this.#open(false);
    keyed(
      $("lost-people"),
      this.#lost,
      (one) => one.id,
      (one) => this.#create(one.id),
      (row, one) => {
        const [who, where, heard] = row.children;
        setText(who, `Staff ${one.id}`);
        setText(where, `last in ${spotText(one)}, ${levelText(one.level)}`);
        const age = blind ? heardText(one.heardAt, one.age, blind) : `${duration(one.age)} ago`;
        updateTime(heard, one.heardAt, age);
      },
    );
    return new Set(this.#lost);
  }

  /** @param {boolean} isOpen */
  #open(isOpen) {
    $("lost").hidden = !isOpen;
    setAttribute(buttonById("lost-chip"), "aria-expanded", isOpen);
  }

  /** @param {string} id */
  #create(id) {
    const known = () => this.#dismiss(this.#lost.filter((one) => one.id === id));
    const label = `Dismiss staff ${id}`;
    return el(
      "li",
      {},
      el("button", { type: "button", class: "who", onclick: () => this.choose(id) }),
      el("span"),
      el("time"),
      el("button", { type: "button", "aria-label": label, onclick: known }, "Dismiss"),
    );
  }

  /** @param {Person[]} people */
  #dismiss(people) {
    const now = withDismissed(people, dismissed(), this.#all);
    remember(KEY, JSON.stringify(now));
    this.changed();
  }
}
