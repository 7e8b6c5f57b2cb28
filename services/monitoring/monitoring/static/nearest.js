// Who is nearest to a gap.
import { RECENT_SECONDS, compare, heardAt, isUnknown, levelText } from "./words.js";

const STEP_PENALTY_METRES = 1000; // to another level: everybody on this one is nearer

// Everybody heard in the last 5 minutes, with their place on the plan of `places`.
export function ambassadors(staff, places) {
  const byMac = new Map(places.flatMap((spot) => spot.macs.map((mac) => [mac, spot])));
  const now = staff.now();
  return (staff.data?.data ?? []).flatMap((one) => {
    const age = now - heardAt(one, staff.data.as_of);
    if (age > RECENT_SECONDS || isUnknown(one.level)) return [];
    const { x, y } = byMac.get(one.mac) ?? {};
    return [
      {
        id: String(one.staff_id),
        level: String(one.level),
        location: one.location,
        x,
        y,
      },
    ];
  });
}

// The nearest on the same level by the plan, else the nearest level; null when nobody is about.
function nearest(spot, walking) {
  const far = (one) => {
    const levels =
      one.level === spot.level ? 0 : 1 + Math.abs(Number(one.level) - Number(spot.level) || 1);
    const metres = Math.hypot(one.x - spot.x, one.y - spot.y);
    return {
      levels,
      metres,
      cost:
        levels * STEP_PENALTY_METRES + (Number.isFinite(metres) ? metres : STEP_PENALTY_METRES / 2),
    };
  };
  return (
    walking
      .map((one) => ({ ...one, ...far(one) }))
      .sort((one, other) => one.cost - other.cost || compare(one.id, other.id))[0] ?? null
  );
}

export function nearestText(spot, walking) {
  const one = nearest(spot, walking);
  if (!one) return "nobody was heard in the last 5 minutes";
  const where =
    one.levels === 0
      ? Number.isFinite(one.metres)
        ? `${Math.round(one.metres)} m away`
        : "on this level"
      : `on ${levelText(one.level)}`;
  return `Staff ${one.id}, ${where}, ${one.location}`;
}
