// Who is where, from what the API says of staff and of beacons. Pure.
/** @import { Freshness } from "../words.js" */
/** @import { Names } from "./names.js" */
import {
  GONE_SECONDS,
  clockText,
  compare,
  freshness,
  heardAt as heardTime,
  heardText,
  idsOf,
  isUnknown,
  placeText,
  spotText,
} from "../words.js";

/**
 * A spot on the plan; x and y in metres, null off the plan.
 * @typedef {{ key: string, level: string, location: string, mac?: string, aliases?: string[], x: number | null, y: number | null }} Spot
 *
 * The spots of the directory, by the ways in which a detection may name one.
 * @typedef {object} Directory
 * @property {Spot[]} known
 * @property {Map<string, Spot>} byMac
 * @property {Map<string, Spot>} byName by level and location
 * @property {Map<string, number>} floors of each level its place in their order, the lowest first
 *
 * Somebody who was ever heard.
 * @typedef {object} Person
 * @property {string} id
 * @property {string} called
 * @property {string | undefined} name undefined where nobody gave them one
 * @property {NamedPerson | undefined} named what the office says of them
 * @property {number} order their place among all, by name
 * @property {string} level
 * @property {number} floor the place of the level among all, the lowest first
 * @property {string} location
 * @property {string} mac
 * @property {number | null} [rssi] dBm
 * @property {boolean} [known] whether the API knows the beacon
 * @property {Spot | undefined} spot
 * @property {string} spotKey
 * @property {number} heardAt unix seconds
 * @property {number} age seconds
 * @property {string} clock what is wrong with the phone's clock, "" where nothing is known to be
 * @property {number} silence seconds, when they were read: while the page is blind, it does not grow
 * @property {boolean} gone too long ago for the plan
 * @property {Freshness} fresh
 * @property {string} title
 * @property {SaidOfLost | null} [lost_contact]
 * @property {number} timestamp of what was heard last, by the phone's clock
 * @property {boolean} picked
 * @property {boolean} dimmed a search is on, and does not find them
 */

/**
 * @param {Beacon[]} beacons level by level, as the API has them
 * @returns {Directory}
 */
export function directorySpots(beacons) {
  const known = beacons.map((beacon) => ({
    ...beacon,
    key: beacon.mac,
    location: spotText(beacon),
  }));
  return {
    known,
    byMac: new Map(known.flatMap((spot) => idsOf(spot).map((id) => [id, spot]))),
    byName: new Map(known.map((spot) => [`${spot.level}\n${spot.location}`, spot])),
    floors: new Map([...new Set(known.map(({ level }) => level))].map((level, floor) => [level, floor])),
  };
}

/**
 * Everybody ever heard, by name. Whose beacon the directory does not know has no `spot`.
 * @param {{ data: StaffAnswer | null, failure: string, takenAt: number, now: () => number }} staff
 * @param {Directory} directory
 * @param {string} picked the id of the person whose details are shown
 * @param {Names} names
 * @returns {Person[]}
 */
export function everyone(staff, directory, picked, names) {
  const now = staff.now();
  const asOf = staff.failure ? staff.takenAt : now; // blind: whom we saw then, however long ago
  const { data = [], as_of: answeredAt = now } = staff.data ?? {};
  return data
    .map((person) => ({ ...person, id: String(person.staff_id) }))
    .sort((person, other) => names.compare(person.id, other.id))
    .map((person, order) => {
      const heardAt = heardTime(person, answeredAt);
      const age = now - heardAt;
      const silence = asOf - heardAt;
      const level = isUnknown(person.level) ? "unknown" : String(person.level);
      const spot = spotOf(person, level, directory);
      const place = placeText({ ...person, level });
      const called = names.called(person.id);
      return {
        ...person,
        called,
        name: names.of(person.id)?.name,
        named: names.of(person.id),
        level,
        floor: floorOf(level, directory),
        age,
        heardAt,
        spot,
        spotKey: spot?.key ?? `${level} ${person.mac}`,
        title: `${called}: ${place}, ${heardText(heardAt, age, staff.failure)}`,
        fresh: freshness(age),
        silence,
        gone: silence > GONE_SECONDS,
        clock: clockText(person.clock_skew_seconds),
        picked: person.id === picked,
        dimmed: false,
        order,
      };
    });
}

/** @param {Person} person */
export const isOffDuty = ({ named }) => named?.on_duty === false;

/**
 * A level that the directory has not comes after those that it has, and an unknown one last.
 * @param {string} level
 * @param {Directory} directory
 */
const floorOf = (level, { floors }) =>
  isUnknown(level) ? Infinity : (floors.get(level) ?? floors.size);

/**
 * @param {{ floor: number, level: string }} level
 * @param {{ floor: number, level: string }} other
 */
export const byFloor = (level, other) =>
  (level.level === other.level ? 0 : level.floor - other.floor) || compare(level.level, other.level);

/**
 * @param {StaffMember} person
 * @param {string} level
 * @param {Directory} directory
 */
function spotOf(person, level, { byMac, byName }) {
  const spot = byMac.get(person.mac);
  return spot?.level === level ? spot : byName.get(`${level}\n${person.location}`);
}

/**
 * The spots to draw: those of the directory, and those where somebody is that it does not know.
 * @param {Directory} directory
 * @param {Person[]} present
 * @returns {Spot[]}
 */
export function spotsToDraw(directory, present) {
  const busy = new Set(present.map((person) => person.spotKey));
  const known = directory.known.filter((spot) => Number.isFinite(spot.x) || busy.has(spot.key));
  const unknown = present
    .filter((person) => !person.spot)
    .map((person) => ({
      key: person.spotKey,
      level: person.level,
      location: spotText(person),
      x: null,
      y: null,
    }));
  return [...known, ...new Map(unknown.map((spot) => [spot.key, spot])).values()];
}

/**
 * The levels of the building, the lowest first.
 * @param {Directory} directory
 * @param {{ level: string }[]} drawn
 */
export const levelsOf = (directory, drawn) =>
  [...new Set([...directory.floors.keys(), ...drawn.map(({ level }) => level)])]
    .map((level) => ({ level, floor: floorOf(level, directory) }))
    .sort(byFloor)
    .map(({ level }) => level);
