// Which of the beacons that nobody registered may be ours. Pure.

/**
 * Apart: what was heard once. Phones and watches change their addresses every few minutes.
 * @param {UnknownBeacon[]} found
 */
export const byHowOften = (found) => ({
  often: found.filter((one) => one.count > 1),
  once: found.filter((one) => one.count <= 1),
});
