// Which locations are a gap in the coverage, and their order. Pure.
import { compare, duration, isUnknown, macText } from "../words.js";

/**
 * A location with the seconds since anyone was there (Infinity: never). "soon": over half of the time.
 * @typedef {Omit<CoveredLocation, "level"> & {
 *   key: string, label: string, level: string, age: number, state: "ok" | "soon" | "gap" }} Gap
 */

/**
 * The locations whose level is known, each with its state.
 * @param {CoveredLocation[]} locations
 * @param {number} now unix seconds
 * @param {number} gapMinutes
 * @returns {Gap[]}
 */
export function withStates(locations, now, gapMinutes) {
  /** @type {Map<string, number>} */
  const names = new Map();
  for (const place of locations) names.set(nameOf(place), (names.get(nameOf(place)) ?? 0) + 1);
  return locations
    .filter((place) => !isUnknown(place.level))
    .map((place) => {
      const level = String(place.level);
      const age = place.last_visited === null ? Infinity : now - place.last_visited;
      const state = stateOf(age, gapMinutes * 60);
      return { ...place, key: place.macs.join(), label: labelOf(place, names), level, age, state };
    });
}

/** @param {CoveredLocation} one */
const nameOf = ({ level, location }) => `${level}\n${location}`;

/**
 * Its name; where another of that level has the same, with the end of its beacon's address.
 * @param {CoveredLocation} place
 * @param {Map<string, number>} names how many have each
 */
function labelOf(place, names) {
  const isShared = (names.get(nameOf(place)) ?? 0) > 1;
  if (!isShared) return place.location;
  const [mac] = place.macs;
  const end = mac.includes(":") ? mac.split(":").slice(-2).join(":") : macText(mac).slice(-5);
  return `${place.location} (…${end})`;
}

/**
 * @param {number} age
 * @param {number} gapSeconds
 */
function stateOf(age, gapSeconds) {
  if (age >= gapSeconds) return "gap";
  return age >= gapSeconds / 2 ? "soon" : "ok";
}

/**
 * @param {number} age seconds
 */
export function sinceText(age) {
  if (age === Infinity) return "never";
  return age < 60 ? "now" : duration(age);
}

/**
 * What is said of a location where nobody was yet: a new one is no old gap.
 * @param {{ registered_at?: number | null }} location
 * @param {number} now
 */
export const neverText = ({ registered_at: at }, now) =>
  at ? `registered ${duration(now - at)} ago, not heard yet` : "never heard";

/**
 * Of those that were never visited, or equally long ago, the order of the API stays.
 * @param {Gap} gap
 * @param {Gap} other
 */
export const byLongestGap = (gap, other) => other.age - gap.age || 0;

/**
 * @param {Gap} gap
 * @param {Gap} other
 */
export const fromWestToEast = (gap, other) =>
  (gap.x ?? Infinity) - (other.x ?? Infinity) || compare(gap.location, other.location);
