// Who of a room's people is drawn, and how they stand there: as many as it has room for, and a count
// of the others. Ghosts, of whom contact was lost there, take the room that is left. Pure.
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
import { FRESHEST_FIRST, overflowMarker, personMarker } from "./marker_layout.js";

const GAP_PX = 2; // between two markers
const CROWDS = [3, 6, 12]; // people in a room, from which on its shade is the next one

/**
 * How crowded a room is: 0 for as few as are seen at a glance, to 3.
 * @param {number} people
 */
export const crowdStep = (people) => CROWDS.filter((least) => people >= least).length;

/** @param {Figure} person */
const isGhost = (person) => Boolean(person.gone) && !person.picked;

/**
 * Who gets a place before whom: the chosen person, then whom the search finds, then the freshest.
 * Not by seconds: else they would change places at each read.
 * @param {Figure} person
 * @param {Figure} other
 */
export const byImportance = (person, other) =>
  Number(other.picked) - Number(person.picked) ||
  Number(isGhost(person)) - Number(isGhost(other)) ||
  Number(person.dimmed ?? false) - Number(other.dimmed ?? false) ||
  FRESHEST_FIRST.indexOf(person.fresh) - FRESHEST_FIRST.indexOf(other.fresh) ||
  person.order - other.order;

/**
 * The markers of a room's people in rows, the most important first. Nothing is wider than the room,
 * nobody who is there is left out: who has no place is counted in the last marker.
 * @param {string} key of the room
 * @param {Figure[]} crowd
 * @param {{ width: number, rows: number, stacked?: boolean }} room px; `stacked`: rather higher than
 *   wide
 * @param {Scale} scale
 * @returns {Marker[][]} each marker's `px` counts from the middle of its row
 */
export function packCrowd(key, crowd, room, scale) {
  const all = [...crowd].sort(byImportance);
  const people = all.slice(0, all.filter((person) => !isGhost(person)).length || 1);
  const most = Math.max(1, room.rows) * Math.max(1, Math.floor(room.width / scale.unit));
  if (people.length <= most) {
    const candidates = all.slice(0, most);
    const large = candidates.map((person) => personMarker(person, scale));
    const small = candidates.map((person) => personMarker(person, scale, room.width));
    for (let count = candidates.length; count >= people.length; count -= 1) {
      const rows = inRows(large.slice(0, count), room) ?? inRows(small.slice(0, count), room);
      if (rows) return rows.map(centred);
    }
  }
  for (let count = Math.min(most, people.length - 1); count > 0; count -= 1) {
    const shown = people.slice(0, count).map((person) => personMarker(person, scale, room.width));
    const counted = overflowMarker(key, people.slice(count), scale);
    const rows = inRows([...shown, counted], room);
    if (rows) return rows.map(centred);
  }
  const [first, ...others] = people;
  if (!first.picked && others.length) return [centred([overflowMarker(key, people, scale, true)])];
  return [centred([personMarker(first, scale, room.width, others.length)])];
}

/**
 * Markers one after the other, in no more rows than there are; null when they do not fit.
 * @param {Marker[]} markers
 * @param {{ width: number, rows: number, stacked?: boolean }} room
 * @returns {Marker[][] | null}
 */
function inRows(markers, { width, rows, stacked }) {
  const widest = Math.max(...markers.map((marker) => marker.width));
  if (widest > width) return null;
  let limit = stacked ? widest : width;
  for (;;) {
    const filledRows = filled(markers, limit);
    if (filledRows.length <= rows) return filledRows;
    if (limit >= width) return null;
    limit = Math.min(width, limit + widest + GAP_PX);
  }
}

/**
 * @param {Marker[]} markers
 * @param {number} width
 */
function filled(markers, width) {
  /** @type {Marker[][]} */
  const rows = [];
  let used = Infinity;
  for (const marker of markers) {
    const row = rows.at(-1);
    if (row && used + GAP_PX + marker.width <= width) {
      row.push(marker);
      used += GAP_PX + marker.width;
    } else {
      rows.push([marker]);
      used = marker.width;
    }
  }
  return rows;
}

/**
 * @param {Marker[]} row
 * @returns {Marker[]}
 */
function centred(row) {
  let x = -rowWidth(row) / 2;
  return row.map((marker) => {
    const px = x + marker.width / 2;
    x += marker.width + GAP_PX;
    return { ...marker, px };
  });
}

/** @param {Marker[]} row */
export const rowWidth = (row) =>
  row.reduce((sum, marker) => sum + marker.width + GAP_PX, -GAP_PX);

/**
 * The markers of all rows where they are drawn.
 * @param {Marker[][]} rows
 * @param {number} x of the spot
 * @param {{ left: number, right: number }} room
 * @param {(row: number) => number} yOf the middle of each row
 */
export const placeRows = (rows, x, room, yOf) =>
  rows.flatMap((row, index) => {
    const middle = rowMiddle(row, x, room);
    return row.map((marker) => ({ ...marker, px: middle + marker.px, py: yOf(index) }));
  });

/**
 * Where the middle of a row is drawn, so that it neither leaves its room nor, if it can, its spot.
 * @param {Marker[]} row
 * @param {number} x of the spot
 * @param {{ left: number, right: number }} room
 */
export function rowMiddle(row, x, { left, right }) {
  const half = rowWidth(row) / 2;
  return Math.max(left + half, Math.min(x, right - half));
}
