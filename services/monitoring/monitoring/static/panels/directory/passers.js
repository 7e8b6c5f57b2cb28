// Who was heard on both sides of a beacon: what two people heard, each on one side, tells nothing of it.
import { RequestFailed, request } from "../../page/request.js";
import { API } from "../../page/shell.js";

const MAX_VISITS = 1000;
const SHORT_SECONDS = 900; // where more was heard than the API takes at once

/** @typedef {{ level: string, location: string, last_visited: number | null, since: number, passed: string[] }} Silent */

/**
 * Who has passed, by the beacon and when it was last heard: that stays true until it is heard again.
 * @type {Map<string, string>}
 */
const known = new Map();
/** Those who are asked for now. @type {Set<string>} */
const asked = new Set();

/** @param {Silent} one */
const keyOf = ({ level, location, last_visited: last }) => JSON.stringify([level, location, last]);

/**
 * Who passed a beacon since it fell silent; undefined while nobody is known to have.
 * @param {Silent} beacon
 */
export const passerOf = (beacon) => known.get(keyOf(beacon));

/**
 * Looks for those who passed: once they are found, `found` is called.
 * @param {Silent[]} silent
 * @param {number} now
 * @param {() => void} changed
 */
export function findPassers(silent, now, changed) {
  for (const beacon of silent) {
    const key = keyOf(beacon);
    if (known.has(key) || asked.has(key)) continue;
    asked.add(key);
    bothSides(beacon, now)
      .then((passer) => {
        if (passer === undefined) return;
        known.set(key, passer);
        changed();
      })
      .catch((error) => console.warn(`Who passed ${beacon.location} was not read:`, error))
      .finally(() => asked.delete(key));
  }
}

/**
 * @param {Silent} one
 * @param {number} now
 */
async function bothSides({ level, since, passed }, now) {
  const [here, there] = await Promise.all(passed.map((name) => peopleAt(level, name, since, now)));
  return [...here].find((passer) => there.has(passer));
}

/**
 * @param {string} level
 * @param {string} location
 * @param {number} from
 * @param {number} to
 * @returns {Promise<Set<string>>}
 */
async function peopleAt(level, location, from, to) {
  const times = { from: String(Math.floor(from)), to: String(Math.ceil(to)) };
  const query = new URLSearchParams({ level, location, ...times, limit: String(MAX_VISITS) });
  try {
    const answer = await request(`${API}/visits?${query}`);
    return new Set(answer.data.map((/** @type {VisitAnswer} */ visit) => String(visit.staff_id)));
  } catch (error) {
    const isTooMuch = error instanceof RequestFailed && error.problem?.errors?.length;
    if (!isTooMuch || to - from <= SHORT_SECONDS) throw error;
    return peopleAt(level, location, to - SHORT_SECONDS, to);
  }
}
