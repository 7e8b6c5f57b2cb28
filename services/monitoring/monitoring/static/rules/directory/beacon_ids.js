// The ids of a beacon, one or several: each may be heard. Pure.
/** @import { Named } from "../words.js" */
import { idsOf, macText } from "../words.js";

/** @param {Named} beacon */
export const idsText = (beacon) => idsOf(beacon).map(macText).join(", ");

/**
 * What its other ids are, after a place; "" where there are none.
 * @param {string[]} [aliases]
 */
export const alsoText = (aliases = []) =>
  aliases.length ? `, also ${aliases.map(macText).join(", ")}` : "";

/**
 * An id as the directory has it where it is a MAC; the service reads any other.
 * @param {string} text as somebody wrote it
 */
export function idOf(text) {
  const digits = text.replaceAll(/[:\s-]/g, "").toUpperCase();
  return /^[0-9A-F]{12}$/.test(digits) ? digits : text.trim();
}

/**
 * Ids with blanks, commas or semicolons between.
 * @param {string} text
 */
export const idsIn = (text) =>
  text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(idOf);

/**
 * The beacon that has an id, whichever of its ids that is.
 * @template {Named} B
 * @param {B[]} beacons
 * @param {string} id
 */
export const withId = (beacons, id) => beacons.find((beacon) => idsOf(beacon).includes(id));
