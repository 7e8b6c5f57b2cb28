// Who dropped out: a chip with their number, and a list of who, where last, how long ago. A viewer
// dismisses whom they know of; their browser keeps that.
/** @import { Dismissed } from "../rules/lost_contact.js" */
/** @import { Person } from "../rules/people_model.js" */
import { changeAddress, parameter } from "../page/address.js";
import { $, buttonById, el, inputById, keyed, setAttribute, setText } from "../page/dom.js";
import { remember, remembered } from "../page/remembered.js";
import { officeLostMinutes } from "../page/shell.js";
import { updateTime } from "../page/time_element.js";
import { lostContact, withDismissed } from "../rules/lost_contact.js";
import { duration, heardText, levelText, minutesOf, peopleText, spotText } from "../rules/words.js";

const KEY = "dismissed";

const TITLE = document.title;

/** As the address, this browser, or else the office has it. */
export const lostMinutes = () => minutesOf(parameter("lost"), remembered("lost"), officeLostMinutes);

/** @returns {Dismissed} */
export function dismissed() {
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
  /** Who was lost before, null: nothing was shown yet. @type {Set<string> | null} */
  #known = null;
  /** Called with those who are lost now, and were not before. @type {(people: Person[]) => void} */
  alarm = () => {};

  /**
   * @param {(id: string) => void} choose called with the person to show
   * @param {() => void} changed called when somebody was dismissed
   */
  constructor(choose, changed) {
    this.choose = choose;
    this.changed = changed;
    buttonById("lost-chip").addEventListener("click", () => this.#open($("lost").hidden));
    buttonById("lost-dismiss").addEventListener("click", () => this.#dismiss(this.#lost));
    const field = inputById("lost-minutes");
    field.value = String(lostMinutes());
    field.addEventListener("change", () => {
      if (!field.validity.valid || !field.value) field.value = officeLostMinutes;
      remember("lost", field.value);
      changeAddress({ lost: field.value }, { replace: true });
      this.#known = null; // another limit is no news
      this.changed();
    });
  }

  /**
   * @param {Person[]} all
   * @param {unknown} blind
   * @returns {Set<Person>} who is lost, and not dismissed
   */
  show(all, blind) {
    this.#all = all;
    this.#lost = lostContact(all, dismissed(), lostMinutes());
    const count = this.#lost.length;
    const text = count ? `${peopleText(count)} lost contact` : "";
    buttonById("lost-chip").hidden = !all.length;
    setAttribute(buttonById("lost-chip"), "data-none", count === 0);
    setText(buttonById("lost-chip"), text || "Nobody lost contact");
    setText($("lost-says"), text); // a screen reader says it when it changes
    document.title = count ? `(${count} lost) ${TITLE}` : TITLE;
    buttonById("lost-dismiss").hidden = !count;
    this.#tell(all);
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

  /** @param {Person[]} all */
  #tell(all) {
    if (!all.length) return; // nothing was read yet
    const known = this.#known;
    const news = this.#lost.filter((one) => known && !known.has(one.id));
    this.#known = new Set(this.#lost.map((one) => one.id));
    if (news.length) this.alarm(news);
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
