// Which of the beacons that nobody registered may be ours. Pure.

/**
 * Apart: what was heard once. Phones and watches change their addresses every few minutes.
 * @param {UnknownBeacon[]} beacons
 */
export const byHowOften = (beacons) => ({
  often: beacons.filter((beacon) => beacon.count > 1),
  once: beacons.filter((beacon) => beacon.count <= 1),
});
