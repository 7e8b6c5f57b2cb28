// What is told of a battery, in words; a mark alone would be a colour. Pure.

export const MAX_NEXT = 10;

/** @param {Battery} battery */
export const batteryText = ({ value, unit, low }) =>
  `${value.toLocaleString()} ${unit}${low ? ", low" : ""}`;

/**
 * When a battery has to be changed, as far as anybody can tell.
 * @param {Battery} battery
 * @param {number} now
 */
export function changeText({ per_day: trend, empty_at: empty }, now) {
  if (empty !== null) return empty <= now ? "change it now" : `empty about ${dayText(empty)}`;
  return trend === null ? "too few days for a trend" : "no end in sight";
}

/** @param {number} seconds */
const dayText = (seconds) =>
  new Date(seconds * 1000).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });

/**
 * The beacons of the directory that tell of a battery, where they hang now, in the order of the answer:
 * the next to change first.
 * @param {BeaconBattery[]} told
 * @param {Beacon[]} directory
 */
export function batteriesOf(told, directory) {
  const known = new Map(directory.map((beacon) => [beacon.mac, beacon]));
  return told.flatMap(({ mac, battery }) => {
    const beacon = known.get(mac);
    return battery && beacon ? [{ ...beacon, battery }] : [];
  });
}
