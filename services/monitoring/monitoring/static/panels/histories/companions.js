// The others of Replay: who is shown at the same time, each with a ribbon of their own.
/** @import { Figure } from "../../drawings/marker_layout.js" */
/** @import { Spot } from "../../rules/people/people_model.js" */
/** @import { Range } from "../../rules/histories/day_ranges.js" */
/** @import { Visit } from "../../rules/histories/visits.js" */
import { addressWith } from "../../page/address.js";
import { $, el, keyed, setAttribute, setText, svg } from "../../page/dom.js";
import { callBy, names } from "../../page/people.js";
import { RequestFailed } from "../../page/request.js";
import { spotKey } from "../../rules/histories/replay_spots.js";
import { visitAt, visits as visitsOf } from "../../rules/histories/visits.js";
import { placeText } from "../../rules/words.js";
import { readHistory } from "./history.js";
import { ribbonBlocks, ribbonBox } from "./timeline.js";

export const MAX_COMPANIONS = 4; // more ribbons than that push the plan off a small screen

/**
 * @typedef {object} Companion
 * @property {string} id
 * @property {Visit[]} visits
 * @property {string} says instead of a place: nothing is known of them
 */

export class Companions {
  /** @type {Companion[]} */
  #people = [];

  /**
   * Reads the histories of all of them, one after the other.
   * @param {string[]} ids
   * @param {Range} range
   * @param {() => boolean} isWanted
   */
  async load(ids, range, isWanted) {
    this.#people = ids.map((id) => ({ id, visits: [], says: "reading…" }));
    const people = this.#people;
    for (const companion of people) {
      const { visits, says } = await read(companion.id, range, isWanted);
      if (!isWanted()) return;
      Object.assign(companion, { visits, says });
    }
  }

  get visits() {
    return this.#people.flatMap((companion) => companion.visits);
  }

  /**
   * Those who were on a level at a time, or were last heard there.
   * @param {string} level
   * @param {number} at
   * @param {Spot[]} spots
   * @returns {Figure[]}
   */
  figures(level, at, spots) {
    return this.#people.flatMap(({ id, visits }, index) => {
      const current = visitAt(visits, at);
      if (current?.visit.level !== level) return [];
      return {
        id,
        name: names.of(id)?.name,
        spotKey: spotKey(current.visit, spots),
        fresh: current.there ? "now" : "stale",
        order: index + 1,
        title: placeText(current.visit),
        picked: false,
      };
    });
  }

  /**
   * @param {string} person whom all of it is about
   * @param {number} at
   * @param {Range} range
   */
  draw(person, at, range) {
    const ids = this.#people.map((companion) => companion.id);
    $("companions").hidden = !ids.length;
    $("player").style.setProperty("--companions", String(ids.length)); // the plan leaves them room
    keyed(
      $("companions"),
      this.#people,
      (companion) => companion.id,
      (companion) => el("li", {}, callBy(el("a"), companion.id), el("span", { class: "quiet" }), ribbon()),
      (row, companion) => {
        const [name, place, box] = row.children;
        const others = [person, ...ids.filter((id) => id !== companion.id)].join(" ");
        setAttribute(name, "href", addressWith({ person: companion.id, with: others, at: Math.round(at) }));
        setText(place, companion.says || placeAt(companion.visits, at));
        const drawn = `${range.from} ${range.to} ${companion.visits.length}`;
        if (box.getAttribute("data-drawn") === drawn) return;
        setAttribute(box, "data-drawn", drawn);
        box.children[0].replaceChildren(...ribbonBlocks(companion.visits, range));
      },
    );
  }
}

const ribbon = () => el("div", { class: "ribbon" }, svg("svg", { ...ribbonBox, "aria-hidden": true }));

/**
 * @param {Visit[]} visits
 * @param {number} at
 */
function placeAt(visits, at) {
  const current = visitAt(visits, at);
  if (!current) return "not heard yet";
  return current.there ? placeText(current.visit) : `not heard; last ${placeText(current.visit)}`;
}

/**
 * @param {string} id
 * @param {Range} range
 * @param {() => boolean} isWanted
 */
async function read(id, range, isWanted) {
  /** @type {Visit[]} */
  const none = [];
  try {
    const history = await readHistory(id, range, isWanted);
    const visits = visitsOf(history?.detections ?? []);
    return { visits, says: visits.length ? "" : "was not heard in this time" };
  } catch (error) {
    const isStranger = error instanceof RequestFailed && error.problem?.code === "not_found";
    return { visits: none, says: isStranger ? "was never heard" : "could not be read" };
  }
}
