// Which locations are a gap in the coverage, and their order. Pure.
import { compare, duration, isUnknown, macText } from "./words.js";

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
  for (const one of locations) names.set(nameOf(one), (names.get(nameOf(one)) ?? 0) + 1);
  return locations
    .filter((one) => !isUnknown(one.level))
    .map((one) => {
      const level = String(one.level);
      const age = one.last_visited === null ? Infinity : now - one.last_visited;
      const state = stateOf(age, gapMinutes * 60);
      return { ...one, key: one.macs.join(), label: labelOf(one, names), level, age, state };
    });
}

/** @param {CoveredLocation} one */
const nameOf = ({ level, location }) => `${level}\n${location}`;

/**
 * Its name; where another of that level has the same, with the end of its beacon's address.
 * @param {CoveredLocation} one
 * @param {Map<string, number>} names how many have each
 */
function labelOf(one, names) {
  const isShared = (names.get(nameOf(one)) ?? 0) > 1;
  return isShared ? `${one.location} (…${macText(one.macs[0]).slice(-5)})` : one.location;
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
 * @param {Gap} one
 * @param {Gap} other
 */
export const byLongestGap = (one, other) => other.age - one.age || 0;

/**
 * @param {Gap} one
 * @param {Gap} other
 */
export const fromWestToEast = (one, other) =>
  (one.x ?? Infinity) - (other.x ?? Infinity) || compare(one.location, other.location);
