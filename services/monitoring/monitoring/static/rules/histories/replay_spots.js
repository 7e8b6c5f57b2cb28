// The spots of a level as Replay shows them, and where a visit took place. Pure.
/** @import { Spot } from "../people/people_model.js" */
/** @import { Visit } from "./visits.js" */
import { idsOf, spotText } from "../words.js";

/**
 * The spots of the directory on a visit's level, and those that were visited without being in it.
 * @param {Visit} visit
 * @param {Visit[]} visits
 * @param {Beacon[]} beacons
 * @returns {Spot[]}
 */
export function levelSpots(visit, visits, beacons) {
  const known = beacons
    .filter((beacon) => beacon.level === visit.level && Number.isFinite(beacon.x))
    .map((beacon) => ({ ...beacon, key: beacon.mac }));
  const unknown = visits.filter(
    ({ level, mac, location }) =>
      level === visit.level && !known.some((spot) => idsOf(spot).includes(mac) || spot.location === location),
  );
  const names = new Set(unknown.map(spotText));
  const { level } = visit;
  return [
    ...known,
    ...[...names].map((name) => ({ key: name, level, location: name, x: null, y: null })),
  ];
}

/**
 * The key of the spot of a visit: the spot of its beacon, else the one of its name.
 * @param {Visit} visit
 * @param {Spot[]} spots
 */
export function spotKey(visit, spots) {
  const spot =
    spots.find(({ key, aliases }) => idsOf({ mac: key, aliases }).includes(visit.mac)) ??
    spots.find((candidate) => candidate.location === visit.location);
  return spot?.key ?? spotText(visit);
}
