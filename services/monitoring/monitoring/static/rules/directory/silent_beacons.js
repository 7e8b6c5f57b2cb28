// Beacons gone silent while staff walked past: most likely an empty battery. Pure.
import { hasPosition } from "../places/geometry.js";

/** @import { Point } from "../places/geometry.js" */

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
  return placed.flatMap((place) => {
    const last = Math.max(place.last_visited ?? 0, place.registered_at ?? 0);
    const since = Math.max(last + seconds, now - DAY_SECONDS);
    const near = placed
      .filter((other) => other !== place && other.level === place.level)
      .sort((a, b) => distance(place, a) - distance(place, b))
      .slice(0, NEIGHBOURS)
      .filter((other) => (other.last_visited ?? 0) >= since);
    const pair = near
      .flatMap((a, index) => near.slice(index + 1).map((b) => [a, b]))
      .find(([a, b]) => isBetween(place, a, b));
    return pair ? [{ ...place, since, passed: pair.map((other) => other.location) }] : [];
  });
}

/**
 * @param {Point} point
 * @param {Point} other
 */
const distance = (point, other) => Math.hypot(point.x - other.x, point.y - other.y);

/**
 * Whether the way from `a` to `b` leads past a spot: seen from there, they are on different sides.
 * @param {Point} spot
 * @param {Point} a
 * @param {Point} b
 */
const isBetween = (spot, a, b) =>
  (a.x - spot.x) * (b.x - spot.x) + (a.y - spot.y) * (b.y - spot.y) < 0;
