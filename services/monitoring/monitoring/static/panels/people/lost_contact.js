// Who dropped out: a chip with their number, and a list of who, where last, how long ago. An admin
// says to whom they see, and who has gone home; all screens tell it.
/** @import { Person } from "../../rules/people/people_model.js" */
import { changeAddress, parameter } from "../../page/address.js";
import { $, buttonById, el, inputById, keyed, setAttribute, setText } from "../../page/dom.js";
import { callBy, names } from "../../page/people.js";
import { remember, remembered } from "../../page/remembered.js";
import { RequestFailed, request } from "../../page/request.js";
import { API, behindGateway, isReader, officeLostMinutes } from "../../page/shell.js";
import { updateTime } from "../../page/time_element.js";
import { isSeenTo, lostContact, seenToText } from "../../rules/people/lost_contact.js";
import { duration, heardText, levelText, minutesOf, peopleText, spotText } from "../../rules/words.js";
import { errorTexts } from "../dialog.js";

const TITLE = document.title;

/** As the address, this browser, or else the office has it. */
export const lostMinutes = () => minutesOf(parameter("lost"), remembered("lost"), officeLostMinutes);

const canSay = behindGateway && !isReader;

export class LostContact {
  /** What was stored from here: a reading may be older. @type {Map<string, SaidOfLost & { timestamp: number }>} */
  #said = new Map();
  /** @type {Person[]} */
  #lost = [];
  /** Who was lost before, null: nothing was shown yet. @type {Set<string> | null} */
  #known = null;
  #team = "";
  /** Called with those who are lost now, and were not before. @type {(people: Person[]) => void} */
  alarm = () => {};

  /**
   * @param {(id: string) => void} choose called with the person to show
   * @param {() => void} changed called when something was said of somebody
   */
  constructor(choose, changed) {
    this.choose = choose;
    this.changed = changed;
    buttonById("lost-chip").addEventListener("click", () => this.#open($("lost").hidden));
    buttonById("lost-home").addEventListener("click", () => {
      const who = peopleText(this.#lost.length);
      if (confirm(`Have ${who} gone home?`)) this.#say(this.#lost, "gone_home");
    });
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
   * @param {string} team whose people they are, "" for all
   * @returns {Set<Person>} who is lost
   */
  show(all, blind, team) {
    if (team !== this.#team) this.#known = null; // another team is no news
    this.#team = team;
    for (const person of all) this.#addSaid(person);
    this.#lost = lostContact(all, lostMinutes());
    const count = this.#lost.filter((person) => !isSeenTo(person)).length;
    const seenTo = this.#lost.length - count;
    const text = count ? `${peopleText(count)} lost contact` : "";
    buttonById("lost-chip").hidden = !all.length;
    setAttribute(buttonById("lost-chip"), "data-none", count === 0);
    setText(buttonById("lost-chip"), text || (seenTo ? `${peopleText(seenTo)} lost, seen to` : "Nobody lost contact"));
    setText($("lost-says"), text); // a screen reader says it when it changes
    document.title = count ? `(${count} lost) ${TITLE}` : TITLE;
    buttonById("lost-home").hidden = !canSay || !this.#lost.length;
    this.#tell(all);
    keyed(
      $("lost-people"),
      this.#lost,
      (person) => person.id,
      (person) => this.#create(person.id),
      (row, person) => {
        const [, where, heard, seen] = row.children;
        const says = isSeenTo(person) ? `. ${seenToText(person)}` : "";
        setText(where, `last in ${spotText(person)}, ${levelText(person.level)}${says}`);
        if (seen instanceof HTMLElement) seen.hidden = isSeenTo(person);
        const age = blind ? heardText(person.heardAt, person.age, blind) : `${duration(person.age)} ago`;
        updateTime(heard, person.heardAt, age);
      },
    );
    return new Set(this.#lost);
  }

  /** @param {Person[]} all */
  #tell(all) {
    if (!all.length) return; // nothing was read yet
    const known = this.#known;
    const news = this.#lost.filter((person) => known && !known.has(person.id) && !isSeenTo(person));
    this.#known = new Set(this.#lost.map((person) => person.id));
    if (news.length) this.alarm(news);
  }

  /** @param {boolean} isOpen */
  #open(isOpen) {
    $("lost").hidden = !isOpen;
    setAttribute(buttonById("lost-chip"), "aria-expanded", isOpen);
  }

  /** @param {string} id */
  #create(id) {
    /** @type {(state: SaidOfLost["state"], text: string) => Element} */
    const button = (state, text) => {
      const say = () => this.#say(this.#lost.filter((person) => person.id === id), state);
      return el("button", { type: "button", "aria-label": `${text}: ${names.mention(id)}`, onclick: say }, text);
    };
    return el(
      "li",
      {},
      callBy(el("button", { type: "button", class: "who", onclick: () => this.choose(id) }), id),
      el("span"),
      el("time"),
      ...(canSay ? [button("acknowledged", "Seen to"), button("gone_home", "Gone home")] : []),
    );
  }

  /** @param {Person} person */
  #addSaid(person) {
    const said = this.#said.get(person.id);
    if (said?.timestamp === person.timestamp && said.at >= (person.lost_contact?.at ?? 0))
      person.lost_contact = said;
  }

  /**
   * @param {Person[]} people
   * @param {SaidOfLost["state"]} state
   */
  async #say(people, state) {
    const headers = { "Content-Type": "application/json" };
    $("lost-problem").hidden = true;
    for (const { id, timestamp } of people) {
      const body = JSON.stringify({ state, timestamp });
      const address = `${API}/staff/${encodeURIComponent(id)}/lost_contact`;
      try {
        const answer = await request(address, { method: "PUT", body, headers });
        this.#said.set(id, { ...answer, timestamp });
      } catch (error) {
        $("lost-problem").hidden = false;
        setText($("lost-problem"), `This was not stored of ${names.mention(id)}: ${errorTexts(error).join(" ")}`);
        const isHeardAgain = error instanceof RequestFailed && error.problem?.code === "conflict";
        if (!isHeardAgain) break; // the others may meet it too
      }
    }
    this.changed();
  }
}
