// Who was here: the dialog of a room. It asks for a time and tells who was there around it; of a name
// that several levels have, on all of them.
/** @import { Question, Span } from "../../rules/places/visitors.js" */
import { changeAddress, parameter } from "../../page/address.js";
import { $, buttonById, el, inputById, selectById, setText } from "../../page/dom.js";
import { RequestFailed, request } from "../../page/request.js";
import { callBy, names } from "../../page/people.js";
import { API, isLimited } from "../../page/shell.js";
import { isOf, shownTeam, whoseText } from "../../page/team.js";
import { updateTime } from "../../page/time_element.js";
import { secondsOf, setSeconds } from "../../page/time_field.js";
import { answerText, replayAddress, spanOf, stayText, widened, within } from "../../rules/places/visitors.js";
import { compare, isUnknown, levelText, levelTitle } from "../../rules/words.js";
import { errorTexts, openDialog } from "../dialog.js";
import { nameColumns, offerCsv, timeColumns } from "../list_csv.js";

const MINUTES = 15;
const MAX_MINUTES = 720;
const MAX_VISITS = 1000;
const ANY = "Any level";
/** @type {Question} */
const NO_QUESTION = { level: "", location: "", at: 0, minutes: 0 };
const NOTHING = { room: "", room_level: "", at: "", within: "" };

/**
 * With "" as its level: any.
 * @typedef {{ level: string, location: string }} Room
 * @typedef {{ question: Question, span: Span, visits: VisitAnswer[], complete: boolean }} Shown
 */

export class WhoWasHere {
  #asked = 0; // only the newest question is answered
  /** What is listed. @type {Shown} */
  #shown = { question: NO_QUESTION, span: spanOf(NO_QUESTION, 0), visits: [], complete: true };

  /**
   * @param {() => number} now the server's unix seconds
   * @param {() => Room[]} rooms those to choose from, level by level
   */
  constructor(now, rooms) {
    this.now = now;
    this.rooms = rooms;
    this.dialog = $("room-dialog", HTMLDialogElement);
    this.dialog.addEventListener("close", () => {
      this.#asked += 1;
      if (parameter("room")) changeAddress(NOTHING);
    });
    $("room-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    });
    selectById("room").addEventListener("change", () => this.#ask());
    buttonById("room-retry").addEventListener("click", () => this.#ask());
    offerCsv("room-csv", () => listOf(this.#shown));
    const opener = buttonById("room-open");
    opener.disabled = false;
    opener.hidden = isLimited; // histories are not for them
    opener.addEventListener("click", () => this.open());
    window.addEventListener("popstate", () => this.showAddress());
  }

  /**
   * Asks who is in a room now.
   * @param {Room} [room] else one of the level that is shown
   */
  open(room) {
    const rooms = this.#known();
    const wanted = room ?? rooms.find((candidate) => candidate.level === parameter("level")) ?? rooms[0];
    if (isLimited || !wanted || isUnknown(wanted.location)) return;
    changeAddress({ ...NOTHING, room: wanted.location, room_level: wanted.level });
    this.showAddress();
  }

  /** Shows what the address says, and closes when it says nothing. */
  showAddress() {
    const room = { level: parameter("room_level"), location: parameter("room") };
    if (!room.location || isLimited) return this.dialog.close();
    this.#drawRooms(room);
    setSeconds("room-at", Number(parameter("at")) || Math.floor(this.now() / 60) * 60);
    inputById("room-within").value = parameter("within") || String(MINUTES);
    if (!this.dialog.open) {
      const focused = document.activeElement;
      const isThere = focused instanceof HTMLElement && focused !== document.body;
      openDialog(this.dialog, isThere ? focused : buttonById("room-open"));
    }
    this.#ask({ isNow: !parameter("at") });
  }

  /** @returns {Question} what the form says */
  #question() {
    const [level, location] = JSON.parse(selectById("room").value);
    const minutes = Math.round(Number(inputById("room-within").value)) || MINUTES;
    return {
      level,
      location,
      at: secondsOf("room-at"),
      minutes: Math.min(MAX_MINUTES, Math.max(1, minutes)),
    };
  }

  /** @param {{ isNow?: boolean }} [options] `isNow`: the address says no time */
  async #ask({ isNow = false } = {}) {
    const question = this.#question();
    const { level, location, at, minutes } = question;
    this.#asked += 1;
    const asked = this.#asked;
    if (Number.isNaN(at)) return this.#draw("Choose a time.");
    inputById("room-within").value = String(minutes);
    const words = { room: location, room_level: level, at: isNow ? "" : at };
    const narrowed = minutes === MINUTES ? "" : minutes;
    changeAddress({ ...words, within: narrowed }, { replace: true });
    const span = spanOf(question, this.now());
    if (span.from > span.to) return this.#draw("This time is still to come: choose an earlier one.");
    this.#draw("Reading…");
    try {
      const answer = await request(addressOf(question, span));
      if (asked !== this.#asked) return;
      if (!Array.isArray(answer?.data)) throw new Error("Waymark cannot read this now.");
      this.#drawVisits(question, span, answer);
    } catch (error) {
      if (asked !== this.#asked) return;
      if (isTooMuch(error))
        return this.#draw("Too much was heard there in that time: choose fewer minutes.");
      const reason = errorTexts(error).join(", ").replace(/\.$/, "");
      this.#draw(`${reason}. Who was there could not be read.`, { retry: true });
    }
  }

  /**
   * @param {Question} question
   * @param {Span} span
   * @param {VisitsAnswer} answer
   */
  #drawVisits(question, span, { data, next }) {
    const team = shownTeam() ?? "";
    const isShown = isOf(team);
    const visits = within(data, span).filter((visit) => isShown(visit.staff_id));
    this.#shown = { question, span, visits, complete: !next };
    const text = answerText(question, span, visits, whoseText(team));
    this.#draw(next ? `${text} Only the newest are listed: choose fewer minutes.` : text);
    buttonById("room-csv").hidden = false;
    $("room-visits").replaceChildren(
      ...visits.map((visit) => {
        const replay = { href: replayAddress(visit, question.at), title: "Open Replay at that time" };
        const stay = updateTime(el("time"), visit.from, stayText(visit, span));
        const level = question.level ? null : el("span", {}, levelTitle(visit.level));
        return el("li", {}, callBy(el("a", replay), visit.staff_id), level, stay);
      }),
    );
  }

  /**
   * @param {string} text
   * @param {{ retry?: boolean }} [options]
   */
  #draw(text, { retry = false } = {}) {
    setText($("room-state"), text);
    buttonById("room-retry").hidden = !retry;
    buttonById("room-csv").hidden = true;
    $("room-visits").replaceChildren();
  }

  #known() {
    return this.rooms().filter((room) => !isUnknown(room.level) && !isUnknown(room.location));
  }

  /**
   * The names that several levels have, the rooms level by level, and what is asked for.
   * @param {Room} chosen
   */
  #drawRooms(chosen) {
    const rooms = this.#known();
    const values = new Set([...namesOfSeveral(rooms), ...rooms, chosen].map(valueOf));
    /** @type {Map<string, HTMLElement>} */
    const groups = new Map();
    for (const value of values) {
      const [level, location] = JSON.parse(value);
      const group = groups.get(level) ?? el("optgroup", { label: level ? levelTitle(level) : ANY });
      groups.set(level, group);
      group.append(el("option", { value }, `${location}, ${level ? levelText(level) : "any level"}`));
    }
    selectById("room").replaceChildren(...groups.values());
    selectById("room").value = valueOf(chosen);
  }
}

/**
 * @param {Room[]} rooms
 * @returns {Room[]}
 */
function namesOfSeveral(rooms) {
  /** @type {Map<string, Set<string>>} */
  const levels = new Map();
  for (const { level, location } of rooms)
    levels.set(location, (levels.get(location) ?? new Set()).add(level));
  const names = [...levels].filter(([, its]) => its.size > 1).map(([location]) => location);
  return names.sort(compare).map((location) => ({ level: "", location }));
}

/** @param {Room} room */
const valueOf = ({ level, location }) => JSON.stringify([level, location]);

/**
 * @param {Question} question
 * @param {Span} span
 */
function addressOf({ level, location }, span) {
  const { from, to } = widened(span);
  const query = new URLSearchParams({ location, from: String(from), to: String(to) });
  if (level) query.set("level", level);
  return `${API}/visits?${query}&limit=${MAX_VISITS}`;
}

/**
 * The visits as they are listed: what is beyond the span was not read.
 * @param {Shown} shown
 */
const listOf = ({ question, span, visits, complete }) => ({
  name: `who was in ${question.location} ${question.level ? levelText(question.level) : "any level"}`,
  at: question.at,
  /** @type {import("../list_csv.js").Columns<VisitAnswer>} */
  columns: {
    ...nameColumns((visit) => String(visit.staff_id), names),
    level: (visit) => visit.level,
    location: () => question.location,
    ...timeColumns("from", (visit) => Math.max(visit.from, span.from)),
    ...timeColumns("to", (visit) => Math.min(visit.to, span.to)),
    stay: (visit) => stayText(visit, span),
  },
  rows: visits,
  complete,
});

/** @param {unknown} error */
const isTooMuch = (error) =>
  error instanceof RequestFailed && (error.problem?.errors ?? []).some((fault) => fault.field === "from");
