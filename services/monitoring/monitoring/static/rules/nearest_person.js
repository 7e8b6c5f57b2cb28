// Who is nearest to a gap in the coverage. Pure.
import { RECENT_SECONDS, compare, heardAt, isUnknown, levelText } from "./words.js";

/**
 * Somebody who was heard lately; x and y only where the directory knows them.
 * @typedef {{ id: string, level: string, location: string, x?: number | null, y?: number | null }} Walker
 */

const STEP_PENALTY_METRES = 1000; // to another level: everybody on the same level is nearer

/**
 * Everybody heard in the last 5 minutes, with the position of their location.
 * @param {StaffAnswer | null} staff
 * @param {number} now
 * @param {CoveredLocation[]} locations
 * @returns {Walker[]}
 */
export function walkers(staff, now, locations) {
  const byMac = new Map(locations.flatMap((spot) => spot.macs.map((mac) => [mac, spot])));
  return (staff?.data ?? []).flatMap((one) => {
    const age = now - heardAt(one, staff?.as_of ?? now);
    if (age > RECENT_SECONDS || isUnknown(one.level)) return [];
    const { x, y } = byMac.get(one.mac) ?? {};
    return [{ id: String(one.staff_id), level: String(one.level), location: one.location, x, y }];
  });
}

/**
 * The nearest on the same level by the plan, else on the nearest level; undefined when nobody is about.
 * @param {Walker | CoveredLocation} spot
 * @param {Walker[]} walking
 */
function nearest(spot, walking) {
  /** @param {Walker} one */
  const distance = (one) => {
    const isHere = one.level === spot.level;
    const levels = isHere ? 0 : 1 + Math.abs(Number(one.level) - Number(spot.level) || 1);
    const metres = Math.hypot(between(one.x, spot.x), between(one.y, spot.y));
    const onLevel = Number.isFinite(metres) ? metres : STEP_PENALTY_METRES / 2;
    return { levels, metres, cost: levels * STEP_PENALTY_METRES + onLevel };
  };
  return walking
    .map((one) => ({ ...one, ...distance(one) }))
    .sort((one, other) => one.cost - other.cost || compare(one.id, other.id))[0];
}

/**
 * @param {number | null | undefined} one
 * @param {number | null | undefined} other
 */
const between = (one, other) => (one ?? NaN) - (other ?? NaN);

/**
 * @param {CoveredLocation} spot
 * @param {Walker[]} walking
 * @param {boolean} [complete] whether nobody is missing
 */
export function nearestText(spot, walking, complete = true) {
  const one = nearest(spot, walking);
  if (!one && !complete) return "cannot be told now";
  if (!one) return "nobody was heard in the last 5 minutes";
  const onLevel = Number.isFinite(one.metres)
    ? `${Math.round(one.metres)} m away`
    : "on this level";
  const where = one.levels === 0 ? onLevel : `on ${levelText(one.level)}`;
  return `Staff ${one.id}, ${where}, ${one.location}`;
}
