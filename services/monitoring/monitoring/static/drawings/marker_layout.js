// The size and the text of markers. Pure: nothing here knows the DOM.
/** @import { Freshness } from "../rules/words.js" */
import { shortName } from "../rules/people/names.js";

/**
 * A person as the drawings need one.
 * @typedef {object} Figure
 * @property {string} id
 * @property {string} [name]
 * @property {string} spotKey where they are
 * @property {Freshness} fresh
 * @property {number} order their place among all, by name
 * @property {string} title
 * @property {boolean} picked
 * @property {boolean} [gone] drawn though they have gone: they are chosen, or contact was lost
 * @property {boolean} [dimmed] a search is on, and does not find them
 * @property {string} [level]
 * @property {string} [location]
 * @property {string} [mac]
 *
 * The sizes of a drawing in CSS px, and how wide a text is there.
 * @typedef {ReturnType<typeof sizes> & {
 *   textWidth: (text: string, px: number, weight?: number) => number }} Scale
 *
 * One person, or with `more` several people, as a label. `px` and `py` are its middle; a `compact`
 * one has text alone.
 * @typedef {object} Marker
 * @property {string} key
 * @property {string} text
 * @property {number} width
 * @property {number | null} textLength px, where the letters are squeezed
 * @property {Freshness} fresh
 * @property {string} title
 * @property {boolean} picked
 * @property {boolean} dimmed
 * @property {boolean} compact
 * @property {boolean} [gone]
 * @property {number} px
 * @property {number} py
 * @property {Figure} [person]
 * @property {Figure[]} [more]
 */

const LABEL_LENGTH = 8;
const SQUEEZED = 0.8; // letters may be that much narrower
const TIGHT = 0.35; // units, around the text of a compact marker where there is no more room
const SMALL = 0.7; // units
/** The room at which the smallest text is as large as the document's. */
export const LEGIBLE_ROOM = 1 / SMALL;
const SHORTEST_LABEL = 4; // cut to less, it says nothing

/**
 * Sizes follow the root font and the room there is.
 * @param {number} rem CSS px
 * @param {number} room 1 where it is just enough; at most 1.6 is used
 */
export function sizes(rem, room) {
  const unit = rem * Math.min(1.6, Math.max(1, room));
  return {
    text: unit * 0.8,
    small: unit * SMALL,
    height: unit * 1.5,
    glyph: unit * 0.3,
    gap: unit * 0.2,
    unit,
  };
}

/**
 * Cut in the middle: names often differ at their ends, as those of two unknown beacons do.
 * @param {string} text
 * @param {number} length
 */
export function shorten(text, length) {
  if (text.length <= length) return text;
  const end = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - end)}…${end ? text.slice(-end) : ""}`;
}

/**
 * @param {Figure} person
 * @param {number} length
 */
const labelText = ({ id, name }, length) => (name ? shortName(name, length) : shorten(id, length));

/** @param {Figure[]} people some of whom may be drawn though they have gone */
export const countPresent = (people) => people.filter((person) => !person.gone).length;

/** @type {Freshness[]} */
export const FRESHEST_FIRST = ["now", "recent", "stale"];

/**
 * @param {string} text
 * @param {Scale} scale
 * @param {boolean} compact
 */
const labelWidth = (text, scale, compact) =>
  scale.textWidth(text, scale.text, 600) + scale.unit * 0.2 + scale.height * (compact ? 0.22 : 1);

/**
 * The marker of one person.
 * @param {Figure} person
 * @param {Scale} scale
 * @param {number} [room] px, for a compact one that is no wider, if that can be
 * @param {number} [others] how many it counts besides; then it is cut as far as it takes
 * @returns {Marker}
 */
export function personMarker(person, scale, room, others) {
  const compact = room !== undefined;
  const more = others ? `+${others}` : "";
  const least = others === undefined ? SHORTEST_LABEL : 1;
  let length = LABEL_LENGTH;
  const text = () => labelText(person, length) + more;
  const textWidth = () => scale.textWidth(text(), scale.text, 600);
  const tight = () => textWidth() * SQUEEZED + scale.unit * TIGHT;
  while (compact && length > least && tight() > room) length -= 1;
  const label = labelWidth(text(), scale, compact);
  const width = compact ? Math.min(label, Math.max(tight(), room)) : label;
  const textRoom = width - scale.unit * TIGHT;
  return {
    key: person.id,
    person,
    text: text(),
    width,
    textLength: textWidth() > textRoom ? textRoom : null,
    fresh: person.fresh,
    title: person.title + (others ? `, and ${others} more` : ""),
    picked: person.picked,
    dimmed: person.dimmed ?? false,
    compact,
    gone: person.gone,
    px: 0,
    py: 0,
  };
}

/**
 * The marker that counts the people for whom a place has no room.
 * @param {string} key of the place
 * @param {Figure[]} people
 * @param {Scale} scale
 * @param {boolean} [isAll] nobody else is shown there: a count of all, and no plus
 * @returns {Marker}
 */
export function overflowMarker(key, people, scale, isAll = false) {
  const text = `${isAll ? "" : "+"}${people.length}`;
  return {
    key: `more ${key}`,
    more: people,
    text,
    width: labelWidth(text, scale, true),
    textLength: null,
    fresh: FRESHEST_FIRST.find((fresh) => people.some((person) => person.fresh === fresh)) ?? "stale",
    title: `${people.length} ${isAll ? "people" : "more"}: ${people.map((person) => person.name ?? person.id).join(", ")}`,
    picked: people.some((person) => person.picked),
    dimmed: people.every((person) => person.dimmed),
    compact: true,
    px: 0,
    py: 0,
  };
}
