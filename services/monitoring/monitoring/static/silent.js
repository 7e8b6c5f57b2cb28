// Beacons gone silent while staff walked past: most likely an empty battery.

export const SILENT_SECONDS = 3600;
const NEIGHBOURS = 2;

// Locations of the coverage board that were not heard for an hour longer than both of their nearest
// neighbours on the level. A spot with several beacons counts as silent when all of them are.
export function silent(locations, now, seconds = SILENT_SECONDS) {
  const placed = locations.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
  const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
  return placed.flatMap((one) => {
    const near = placed.filter((other) => other !== one && other.level === one.level)
      .sort((a, b) => far(one, a) - far(one, b)).slice(0, NEIGHBOURS);
    const since = one.last_visited ?? 0;
    const passed = near.length === NEIGHBOURS && near.every((other) => (other.last_visited ?? 0) >= Math.max(since + seconds, now - 86_400));
    return passed ? [{ ...one, passed: near.map((other) => other.location) }] : [];
  });
}
