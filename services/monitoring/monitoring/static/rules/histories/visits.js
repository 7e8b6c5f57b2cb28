// From detections to visits: somebody stays in a spot from the first to the last detection there. Pure.

/**
 * @typedef {object} Visit
 * @property {string} level
 * @property {string} location
 * @property {string} mac
 * @property {number | null} [x]
 * @property {number | null} [y]
 * @property {number} from unix seconds
 * @property {number} to
 * @property {number} count of detections
 *
 * @typedef {object} TimeSpent
 * @property {string} key
 * @property {string} level
 * @property {string} location
 * @property {string} mac
 * @property {number} seconds
 * @property {number} visits
 */

export const SILENCE_SECONDS = 300; // without a detection for so long, nobody knows where they were

/**
 * @param {Detection[]} detections the newest first, as the API answers them
 * @returns {Visit[]} the oldest first
 */
export function visits(detections) {
  /** @type {Visit[]} */
  const visits = [];
  for (let i = detections.length - 1; i >= 0; i -= 1) {
    const detection = detections[i];
    const last = visits.at(-1);
    const isHeardOn = last && detection.timestamp - last.to <= SILENCE_SECONDS;
    if (
      isHeardOn &&
      last.level === detection.level &&
      last.location === detection.location &&
      (detection.location !== "unknown" || last.mac === detection.mac)
    ) {
      last.to = detection.timestamp;
      last.count += 1;
    } else {
      if (isHeardOn) last.to = detection.timestamp; // on the way; the next spot begins when it is heard
      visits.push({
        level: detection.level,
        location: detection.location,
        mac: detection.mac,
        x: detection.x,
        y: detection.y,
        from: detection.timestamp,
        to: detection.timestamp,
        count: 1,
      });
    }
  }
  return visits;
}

/**
 * The visit at a time, or the last one before it; `there` is false when it was over by then.
 * @param {Visit[]} list the oldest first
 * @param {number} time
 */
export function visitAt(list, time) {
  let low = 0,
    high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].from <= time) low = middle + 1;
    else high = middle;
  }
  const visit = list[low - 1];
  return visit && { visit, index: low - 1, there: time <= visit.to };
}

/**
 * The same for all visits of one spot.
 * @param {Visit} visit
 */
const keyOf = ({ level, location, mac }) =>
  `${level}\n${location}\n${location === "unknown" ? mac : ""}`;

/**
 * The first visit that begins after a time, or the last that began before it; undefined at the end.
 * @param {Visit[]} list the oldest first
 * @param {number} time
 * @param {boolean} isBack
 */
export const nextVisit = (list, time, isBack) =>
  isBack ? list.findLast((visit) => visit.from < time) : list.find((visit) => visit.from > time);

/**
 * The next visit of a spot, after its last one the first again.
 * @param {Visit[]} list the oldest first
 * @param {number} time
 * @param {string} key
 */
export function nextVisitOf(list, time, key) {
  const there = list.filter((visit) => keyOf(visit) === key);
  return nextVisit(there, time, false) ?? there[0];
}

/**
 * The time spent in each spot, the longest first.
 * @param {Visit[]} list
 * @returns {TimeSpent[]}
 */
export function timeSpent(list) {
  /** @type {Map<string, TimeSpent>} */
  const spots = new Map();
  for (const visit of list) {
    const key = keyOf(visit);
    const spot = spots.get(key) ?? {
      key,
      level: visit.level,
      location: visit.location,
      mac: visit.mac,
      seconds: 0,
      visits: 0,
    };
    spot.seconds += visit.to - visit.from;
    spot.visits += 1;
    spots.set(key, spot);
  }
  return [...spots.values()].sort((spot, other) => other.seconds - spot.seconds);
}
