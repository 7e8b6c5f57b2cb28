// The details of one person, and where they were in the last half hour.
/** @import { Person, Spot } from "../../rules/people/people_model.js" */
/** @import { Visit } from "../../rules/histories/visits.js" */
import { el, keyed, setText } from "../../page/dom.js";
import { names } from "../../page/people.js";
import { isLimited, onlyLevel, onlyTeam } from "../../page/shell.js";
import { Source } from "../../page/source.js";
import { updateTime } from "../../page/time_element.js";
import { visits } from "../../rules/histories/visits.js";
import {
  ageText,
  clock,
  duration,
  idsOf,
  levelText,
  macText,
  placeText,
  spotText,
} from "../../rules/words.js";

const TRAIL_SECONDS = 1800;
const TRAIL_REFRESH_SECONDS = 10;
const TRAIL_DETECTIONS = 500;
const TRAIL_STEP_SECONDS = 60; // the address stays the same for so long, so that pages share one read
const MAX_STEPS = 12;

export class PersonDetails {
  /** The trail of the person that is shown. @type {Source<HistoryAnswer> | null} */
  #source = null;
  #followed = "";

  /**
   * @param {HTMLElement} host
   * @param {() => void} close
   * @param {() => void} changed called when the trail was read
   */
  constructor(host, close, changed) {
    this.host = host;
    this.changed = changed;
    this.title = el("h2");
    this.facts = el("dl", { class: "facts" });
    this.heard = el("time");
    this.steps = el("ol", { class: "steps", tabindex: "0", "aria-label": "Recent trail" });
    this.note = el("p", { class: "quiet" });
    this.replay = el("a", { class: "button", hidden: isLimited }, "Replay the last hour");
    const closing = { type: "button", class: "close", "aria-label": "Close the details" };
    host.append(
      el(
        "div",
        { class: "panel-head" },
        this.title,
        el("button", { ...closing, onclick: close }, "×"),
      ),
      this.facts,
      el("h3", {}, "Last half hour"),
      this.note,
      this.steps,
      this.replay,
    );
  }

  /**
   * @param {Person | undefined} person undefined when nobody of that id was heard
   * @param {string} id "" shows nothing
   * @param {Source<StaffAnswer>} staff
   */
  show(person, id, staff) {
    this.host.hidden = !id || !staff.data;
    this.#follow(id, staff.now());
    if (this.host.hidden) return;
    setText(this.title, names.called(id));
    const now = Math.floor(staff.now());
    this.replay.href = `/monitoring/replay?person=${encodeURIComponent(id)}&from=${now - 3600}&to=${now}`;
    this.facts.hidden = !person;
    if (person) this.#drawFacts(person, staff.failure);
    this.#drawSteps(person);
  }

  /**
   * The keys of the spots that were visited on a level, in order.
   * @param {string} level
   * @param {Spot[]} spots
   */
  trail(level, spots) {
    const byMac = new Map(
      spots.flatMap(({ key, mac = key, aliases }) => idsOf({ mac, aliases }).map((id) => [id, key])),
    );
    return this.#visits()
      .filter((visit) => String(visit.level) === level)
      .flatMap((visit) => byMac.get(visit.mac) ?? []);
  }

  #visits() {
    return visits(this.#source?.data?.data ?? []);
  }

  /**
   * Reads the trail of another person from now on.
   * @param {string} id
   * @param {number} now
   */
  #follow(id, now) {
    const from = Math.floor((now - TRAIL_SECONDS) / TRAIL_STEP_SECONDS) * TRAIL_STEP_SECONDS;
    const url = `/monitoring/api/staff/${encodeURIComponent(id)}/detections?from=${from}&limit=${TRAIL_DETECTIONS}`;
    if (id === this.#followed) {
      if (this.#source) this.#source.url = url;
      return;
    }
    this.#source?.stop();
    this.#followed = id;
    this.#source = id && !isLimited ? new Source(url, TRAIL_REFRESH_SECONDS, this.changed).start() : null;
  }

  /**
   * @param {Person} person
   * @param {unknown} blind
   */
  #drawFacts(person, blind) {
    const heard = clock(person.heardAt);
    updateTime(this.heard, person.heardAt, blind ? heard : `${heard} (${ageText(person.age)})`);
    const strength = Number.isFinite(person.rssi) ? `, ${person.rssi} dBm` : "";
    /** @type {[string, string | Node][]} */
    const facts = [
      ...namedFacts(person.named),
      ["Where", `${spotText(person)}, ${levelText(person.level)}`],
      ["Last heard", this.heard],
      ["Beacon", macText(person.mac) + strength],
    ];
    if (person.clock) facts.push(["Phone's clock", `${person.clock}; the time is ours`]);
    keyed(
      this.facts,
      facts,
      ([name]) => name,
      ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
      (row, [, value]) => {
        const cell = row.children[1];
        if (typeof value === "string") setText(cell, value);
        else if (!cell.contains(value)) cell.replaceChildren(value);
      },
    );
  }

  /** @param {Person | undefined} person */
  #drawSteps(person) {
    const newestFirst = this.#visits().reverse();
    const text = trailText(this.#source, newestFirst.length, person?.clock ?? "");
    setText(this.note, text);
    this.note.hidden = !text;
    keyed(
      this.steps,
      newestFirst.slice(0, MAX_STEPS),
      (visit) => String(visit.from),
      () => el("li", {}, el("time"), el("span"), el("span", { class: "quiet" })),
      (row, visit) => updateStep(row, visit, person),
    );
  }
}

/**
 * What the office says of somebody.
 * @param {NamedPerson | undefined} named
 * @returns {[string, string][]}
 */
function namedFacts(named) {
  if (!named) return [];
  /** @type {[string, string][]} */
  const facts = [
    ["Staff", String(named.staff_id)],
    ["Team", named.team],
    ["Note", named.note],
    ["Duty", named.on_duty ? "" : "off duty"],
  ];
  return facts.flatMap(([name, value]) => (value ? [[name, value]] : []));
}

/**
 * @param {Element} row
 * @param {Visit} visit
 * @param {Person | undefined} person
 */
function updateStep(row, visit, person) {
  const [from, where, stay] = row.children;
  updateTime(from, visit.from, clock(visit.from, { seconds: false }));
  setText(where, visit.level === person?.level ? spotText(visit) : placeText(visit));
  setText(stay, visit.to > visit.from ? duration(visit.to - visit.from) : "a moment");
}

/**
 * Why there is no trail, or another than one may think; "" when there is one.
 * @param {Source<unknown> | null} source
 * @param {number} visited
 * @param {string} clock what is wrong with the phone's
 */
function trailText(source, visited, clock) {
  const limit = onlyLevel ? `level ${onlyLevel}` : `the team ${onlyTeam}`;
  if (isLimited) return `No trail: this link or token shows ${limit} alone.`;
  if (source?.refused) return `No trail: ${source.refused}.`;
  if (!source?.data) return source?.failure ? "The trail cannot be read now." : "Loading…";
  if (clock) return `By the phone's clock, which is ${clock}.`;
  return visited ? "" : "Not heard in the last half hour.";
}
