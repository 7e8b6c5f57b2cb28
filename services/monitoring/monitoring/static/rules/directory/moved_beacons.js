// Which beacons a file gives another place, or other ids. Pure.
import { alsoText } from "./beacon_ids.js";
import { macText, placeText } from "../words.js";

/**
 * One line for each, and how many more there are.
 * @param {ImportAnswer} answer
 */
export function movesOf({ moves = [], changed = 0 }) {
  const lines = moves.map(({ before, after }) => ({
    key: macText(after.mac),
    text: `${placeOf(before)} → ${placeOf(after)}`,
  }));
  return { lines, more: changed - lines.length };
}

/** @param {Beacon} beacon */
const placeOf = (beacon) =>
  placeText(beacon) +
  (beacon.x === null ? "" : ` (${beacon.x}, ${beacon.y})`) +
  alsoText(beacon.aliases);
