// Who is nearest to a gap in the coverage. Pure.
/** @import { Names } from "../people/names.js" */
import { RECENT_SECONDS, compare, heardAt, isUnknown, levelText } from "../words.js";

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
  const byMac = new Map(locations.flatMap((spot) => [...spot.macs, ...(spot.aliases ?? [])].map((id) => [id, spot])));
  return (staff?.data ?? []).flatMap((person) => {
    const age = now - heardAt(person, staff?.as_of ?? now);
    if (age > RECENT_SECONDS || isUnknown(person.level)) return [];
    const { x, y } = byMac.get(person.mac) ?? {};
    return [{ id: String(person.staff_id), level: String(person.level), location: person.location, x, y }];
  });
}

/**
 * The nearest on the same level by the plan, else on the nearest level; undefined when nobody is about.
 * @param {Walker | CoveredLocation} spot
 * @param {Walker[]} walking
 */
function nearest(spot, walking) {
  /** @param {Walker} walker */
  const distance = (walker) => {
    const isHere = walker.level === spot.level;
    const levels = isHere ? 0 : 1 + Math.abs(Number(walker.level) - Number(spot.level) || 1);
    const metres = Math.hypot(between(walker.x, spot.x), between(walker.y, spot.y));
    const onLevel = Number.isFinite(metres) ? metres : STEP_PENALTY_METRES / 2;
    return { levels, metres, cost: levels * STEP_PENALTY_METRES + onLevel };
  };
  return walking
    .map((walker) => ({ ...walker, ...distance(walker) }))
    .sort((walker, other) => walker.cost - other.cost || compare(walker.id, other.id))[0];
}

/**
 * @param {number | null | undefined} height
 * @param {number | null | undefined} other
 */
const between = (height, other) => (height ?? NaN) - (other ?? NaN);

/**
 * @param {CoveredLocation} spot
 * @param {Walker[]} walking
 * @param {Names} names
 * @param {boolean} [complete] whether nobody is missing
 */
export function nearestText(spot, walking, names, complete = true) {
  const walker = nearest(spot, walking);
  if (!walker && !complete) return "cannot be told now";
  if (!walker) return "nobody was heard in the last 5 minutes";
  const onLevel = Number.isFinite(walker.metres)
    ? `${Math.round(walker.metres)} m away`
    : "on this level";
  const where = walker.levels === 0 ? onLevel : `on ${levelText(walker.level)}`;
  return `${names.called(walker.id)}, ${where}, ${walker.location}`;
}
