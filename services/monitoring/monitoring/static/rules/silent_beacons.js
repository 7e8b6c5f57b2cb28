// Beacons gone silent while staff walked past: most likely an empty battery. Pure.
import { hasPosition } from "./geometry.js";

/** @import { Point } from "./geometry.js" */

export const SILENT_SECONDS = 3600;
const DAY_SECONDS = 86_400;
const NEIGHBOURS = 3;

/**
 * The locations between two neighbours that were both heard an hour longer than they were, and than
 * they are in the directory. A location with several beacons counts as silent when all of them are.
 * `since`: unix seconds, from when on somebody who was at both has passed it.
 * @param {CoveredLocation[]} locations
 * @param {number} now
 * @param {number} [seconds]
 */
export function silentLocations(locations, now, seconds = SILENT_SECONDS) {
  const placed = locations.filter(hasPosition);
  return placed.flatMap((one) => {
    const last = Math.max(one.last_visited ?? 0, one.registered_at ?? 0);
    const since = Math.max(last + seconds, now - DAY_SECONDS);
    const near = placed
      .filter((other) => other !== one && other.level === one.level)
      .sort((a, b) => distance(one, a) - distance(one, b))
      .slice(0, NEIGHBOURS)
      .filter((other) => (other.last_visited ?? 0) >= since);
    const pair = near
      .flatMap((a, index) => near.slice(index + 1).map((b) => [a, b]))
      .find(([a, b]) => isBetween(one, a, b));
    return pair ? [{ ...one, since, passed: pair.map((other) => other.location) }] : [];
  });
}

/**
 * @param {Point} one
 * @param {Point} other
 */
const distance = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

/**
 * Whether the way from `a` to `b` leads past a spot: seen from there, they are on different sides.
 * @param {Point} spot
 * @param {Point} a
 * @param {Point} b
 */
const isBetween = (spot, a, b) =>
  (a.x - spot.x) * (b.x - spot.x) + (a.y - spot.y) * (b.y - spot.y) < 0;
