// The size and the text of markers. Pure: nothing here knows the DOM.
/** @import { Freshness } from "../rules/words.js" */
/** @import { Point } from "../rules/geometry.js" */

/**
 * A person as the drawings need one.
 * @typedef {object} Figure
 * @property {string} id
 * @property {string} spotKey where they are
 * @property {Freshness} fresh
 * @property {number} order their place among all, by name
 * @property {string} title
 * @property {boolean} picked
 * @property {string} [level]
 * @property {string} [location]
 * @property {string} [mac]
 *
 * The sizes of a drawing in CSS px, and how wide a text is there.
 * @typedef {ReturnType<typeof sizes> & {
 *   textWidth: (text: string, px: number, weight?: number) => number }} Scale
 *
 * One person, or with `more` several people, as a label. `px` and `py` are its middle.
 * @typedef {object} Marker
 * @property {string} key
 * @property {string} text
 * @property {number} width
 * @property {Freshness} fresh
 * @property {string} title
 * @property {boolean} picked
 * @property {number} px
 * @property {number} py
 * @property {Figure} [person]
 * @property {Figure[]} [more]
 */

const ID_LENGTH = 8;

/**
 * Sizes follow the root font and the room there is.
 * @param {number} rem CSS px
 * @param {number} room 1 where it is just enough; at most 1.6 is used
 */
export function sizes(rem, room) {
  const unit = rem * Math.min(1.6, Math.max(1, room));
  return {
    text: unit * 0.8,
    small: unit * 0.7,
    height: unit * 1.5,
    glyph: unit * 0.3,
    gap: unit * 0.2,
    unit,
  };
}

/**
 * @param {string} text
 * @param {number} length
 */
export const shorten = (text, length) =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;

/**
 * @param {string} text
 * @param {Scale} scale
 */
const labelWidth = (text, scale) =>
  scale.textWidth(text, scale.text, 600) + scale.height + scale.unit * 0.2;

/**
 * The width of one person's marker.
 * @param {Figure} person
 * @param {Scale} scale
 */
export const markerWidth = (person, scale) => labelWidth(shorten(person.id, ID_LENGTH), scale);

/**
 * The marker of one person.
 * @param {Figure} person
 * @param {Scale} scale
 * @param {Point} at
 * @returns {Marker}
 */
export function personMarker(person, scale, at) {
  return {
    key: person.id,
    person,
    text: shorten(person.id, ID_LENGTH),
    width: markerWidth(person, scale),
    fresh: person.fresh,
    title: person.title,
    picked: person.picked,
    px: at.x,
    py: at.y,
  };
}

/**
 * The marker that counts the people for whom a place has no room.
 * @param {string} key of the place
 * @param {Figure[]} people
 * @param {Scale} scale
 * @param {Point} at
 * @returns {Marker}
 */
export function overflowMarker(key, people, scale, at) {
  const text = `+${people.length}`;
  /** @type {Freshness[]} */
  const newestFirst = ["now", "recent", "stale"];
  return {
    key: `more ${key}`,
    more: people,
    text,
    width: labelWidth(text, scale) - scale.height * 0.5,
    fresh: newestFirst.find((fresh) => people.some((one) => one.fresh === fresh)) ?? "stale",
    title: `${people.length} more: ${people.map((person) => person.id).join(", ")}`,
    picked: false,
    px: at.x,
    py: at.y,
  };
}
