// Beacons gone silent while staff walked past: most likely an empty battery.

export const SILENT_SECONDS = 3600;
const DAY_SECONDS = 86_400;
const NEIGHBOURS = 3;

// Locations of the coverage board that lie between two neighbours which were both heard an hour
// longer than they were. A spot with several beacons counts as silent when all of them are.
export function silent(locations, now, seconds = SILENT_SECONDS) {
  const placed = locations.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
  return placed.flatMap((one) => {
    const since = Math.max((one.last_visited ?? 0) + seconds, now - DAY_SECONDS);
    const near = placed
      .filter((other) => other !== one && other.level === one.level)
      .sort((a, b) => far(one, a) - far(one, b))
      .slice(0, NEIGHBOURS)
      .filter((other) => (other.last_visited ?? 0) >= since);
    const pair = near
      .flatMap((a, i) => near.slice(i + 1).map((b) => [a, b]))
      .find(([a, b]) => between(one, a, b));
    return pair ? [{ ...one, passed: pair.map((other) => other.location) }] : [];
  });
}

const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

// Whether the way from `a` to `b` goes past a spot: seen from there they are not on one side.
const between = (spot, a, b) =>
  (a.x - spot.x) * (b.x - spot.x) + (a.y - spot.y) * (b.y - spot.y) < 0;
