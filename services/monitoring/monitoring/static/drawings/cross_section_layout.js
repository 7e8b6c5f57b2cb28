// Where everything on the cross-section of the building stands: levels in, shapes in px out. Pure.
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
/** @import { Spot } from "./plan_layout.js" */
import { bounds, farOut, hasPosition } from "../rules/places/geometry.js";
import { isUnknown, levelTitle } from "../rules/words.js";
import { crowdStep, packCrowd, placeRows } from "./crowd_layout.js";
import { LEGIBLE_ROOM, countPresent, shorten } from "./marker_layout.js";

/**
 * @typedef {{ level: string, spots: Spot[] }} Level
 *
 * What there is to draw on, in px. On a wall screen all levels fit, and text is as large as can be.
 * @typedef {{ width: number, height: number, isWall?: boolean }} Frame
 *
 * The part of a strip that belongs to a spot; to several where they are too near to each other.
 * @typedef {object} Room
 * @property {string} key
 * @property {number} left
 * @property {number} right
 * @property {number} x where its people stand, if there is room
 *
 * One level: a strip of the building, with its spots side by side on the ground.
 * @typedef {object} Strip
 * @property {string} level
 * @property {string} title
 * @property {number} top
 * @property {number} ground
 * @property {number[]} ticks the x of each spot that has a position
 * @property {{ text: string, x: number }[]} names those that have room
 * @property {Room[]} rooms from left to right
 * @property {Map<string, Room>} roomOf each spot, by its key
 *
 * A crowded room, shaded by `step`, and how many are there; null where its one marker is that count.
 * @typedef {{ key: string, step: number, count: number | null, left: number, right: number, x: number, y: number }} Crowd
 *
 * @typedef {object} CrossSectionLayout
 * @property {number} width
 * @property {number} height
 * @property {number} left where the strips begin, right of the levels' titles
 * @property {number} right
 * @property {number} stripHeight
 * @property {Strip[]} strips from the top
 */

const WIDE_PX = 560; // from here on the levels' titles are written out
const NAME_LENGTH = 14;
const UNPLACED_NAME_LENGTH = 22;
const GROUND = 1.3; // units, above the end of a strip: the names have room below it
const ABOVE_GROUND = 0.2; // units, where the lowest markers begin
const NARROWEST_ROOM = 2; // units: it has room for a count
const ASIDE = 3.6; // units, for the room of what has no position
const ROOMS = [1.6, 1.45, 1.3, 1.15, 1]; // the scales to choose from
const ROOMS_ON_WALL = [1.6, LEGIBLE_ROOM, 1.3, 1.15, 1];
const LEAST_STRIP = 3.6; // units
const LEAST_STRIP_ON_WALL = 3.05; // a name, a marker, and next to no air
const COUNT_LINE = 1.3; // times its size, for the count above the people of a room
const OFF_THE_PLAN = "off plan";

/**
 * @param {Level[]} levels the lowest first
 * @param {Frame} frame
 * @param {Scale} scale
 * @returns {CrossSectionLayout}
 */
export function layOutCrossSection(levels, { width, height, isWall = false }, scale) {
  const { unit } = scale;
  const isWide = width > WIDE_PX && !isWall;
  const left = unit * (isWide ? 6.2 : 2.6);
  const least = unit * (isWall ? LEAST_STRIP_ON_WALL : LEAST_STRIP);
  const stripHeight = Math.max(least, height / Math.max(1, levels.length));
  const far = farOut(levels.flatMap(({ spots }) => spots));
  /** @param {Spot} spot @returns {spot is Spot & { x: number, y: number }} */
  const isPlaced = (spot) => hasPosition(spot) && !far.has(spot);
  const placed = levels.flatMap((level) => level.spots.filter(isPlaced));
  const box = placed.length ? bounds(placed) : { left: 0, right: 1 };
  const metres = Math.max(1, box.right - box.left);
  const right = width - unit * 0.4;
  const hasLost = levels.some(({ spots }) => spots.some(isPlaced) && !spots.every(isPlaced));
  const aside = right - (hasLost ? unit * ASIDE : 0);
  const inner = marginsWithin(left, aside, unit);
  /** @param {number} x metres */
  const toPx = (x) => inner.left + ((x - box.left) / metres) * (inner.right - inner.left);
  const edges = { left, aside, right };
  const strips = fromTheTop(levels).map(({ level, spots }, index) => {
    const top = index * stripHeight;
    return {
      level,
      title: stripTitle(level, isWide),
      top,
      ground: top + stripHeight - unit * GROUND,
      ...layOutSpots(level, spots, isPlaced, toPx, edges, scale, isWall),
    };
  });
  return { width, height: stripHeight * levels.length, left, right, stripHeight, strips };
}

/**
 * Where the first and the last spot stand: half a room from the ends, as far as one can tell.
 * @param {number} left
 * @param {number} right
 * @param {number} unit
 */
function marginsWithin(left, right, unit) {
  const margin = Math.min(unit * 3, (right - left) / 12);
  return { left: left + margin, right: right - margin };
}

/**
 * The highest level first; what has no known level is below the ground.
 * @param {Level[]} levels
 */
const fromTheTop = (levels) => [
  ...levels.filter(({ level }) => !isUnknown(level)).reverse(),
  ...levels.filter(({ level }) => isUnknown(level)),
];

/**
 * @param {string} level
 * @param {boolean} isWide
 */
function stripTitle(level, isWide) {
  if (isWide) return isUnknown(level) ? "Unknown" : levelTitle(level);
  return isUnknown(level) ? "?" : levelTitle(level).replace("Level ", "L");
}

/**
 * Spots stand at their x, and those without a position in a room of their own behind the last one;
 * on a level where no spot has a position, they are spread over its width. A name that would overlap
 * is left out.
 * @param {string} level
 * @param {Spot[]} spots
 * @param {(spot: Spot) => spot is Spot & { x: number, y: number }} isPlaced
 * @param {(x: number) => number} toPx
 * @param {{ left: number, aside: number, right: number }} edges
 * @param {Scale} scale
 * @param {boolean} isWall
 */
function layOutSpots(level, spots, isPlaced, toPx, { left, aside, right }, scale, isWall) {
  const placed = spots.filter(isPlaced).sort((spot, other) => spot.x - other.x);
  const lost = spots.filter((spot) => !isPlaced(spot));
  const narrowest = scale.unit * NARROWEST_ROOM;
  if (!placed.length) {
    const step = (right - left) / Math.max(1, lost.length);
    const standing = lost.map((spot, index) => ({ spot, x: left + (index + 0.5) * step }));
    const names = freeNames(standing, UNPLACED_NAME_LENGTH, right, scale);
    return { ticks: [], names, ...roomsOf(level, standing, { left, right }, narrowest) };
  }
  const standing = placed.map((spot) => ({ spot, x: toPx(spot.x) }));
  const names = namesOf(standing, lost.length ? aside : right, scale, isWall);
  const placedRooms = roomsOf(level, standing, { left, right: aside }, narrowest);
  if (lost.length) {
    const x = (aside + right) / 2;
    const room = { key: `${level} off the plan`, left: aside, right, x };
    placedRooms.rooms.push(room);
    for (const spot of lost) placedRooms.roomOf.set(spot.key, room);
    names.push({ text: OFF_THE_PLAN, x });
  }
  return { ticks: standing.map(({ x }) => x), names, ...placedRooms };
}

/**
 * Each spot has the room as far as half-way to the next. Where that is too narrow for a count,
 * neighbours share one.
 * @param {string} level
 * @param {{ spot: Spot, x: number }[]} standing from left to right
 * @param {{ left: number, right: number }} edges
 * @param {number} narrowest px
 */
function roomsOf(level, standing, { left, right }, narrowest) {
  /** @type {{ left: number, right: number, members: { spot: Spot, x: number }[] }[]} */
  const shared = [];
  standing.forEach((placed, index) => {
    const next = standing[index + 1];
    const end = next ? (placed.x + next.x) / 2 : right;
    const last = shared.at(-1);
    const isAbove = last?.members.some(({ x }) => Math.abs(x - placed.x) < 1); // or below it
    const isNarrow = last && (last.right - last.left < narrowest || (!next && end - last.right < narrowest));
    if (last && (isAbove || isNarrow)) {
      last.members.push(placed);
      last.right = end;
    } else shared.push({ left: last?.right ?? left, right: end, members: [placed] });
  });
  /** @type {Map<string, Room>} */
  const roomOf = new Map();
  const rooms = shared.map(({ members, ...ends }) => {
    const x = members.reduce((sum, member) => sum + member.x, 0) / members.length;
    const room = { key: `${level} ${members[0].spot.key}`, ...ends, x };
    for (const { spot } of members) roomOf.set(spot.key, room);
    return room;
  });
  return { rooms, roomOf };
}

/**
 * The names that do not overlap; on a wall screen, where nobody can ask for the others, all of them
 * by their numbers, if that helps: "4-03" for "Room 4-03".
 * @param {{ spot: Spot, x: number }[]} standing from left to right
 * @param {number} end
 * @param {Scale} scale
 * @param {boolean} isWall
 */
function namesOf(standing, end, scale, isWall) {
  const names = freeNames(standing, NAME_LENGTH, end, scale);
  if (!isWall || names.length === standing.length) return names;
  const numbered = standing.map(({ spot, x }) => {
    const location = /\S*\d\S*$/.exec(spot.location)?.[0] ?? spot.location;
    return { spot: { ...spot, location }, x };
  });
  const shorter = freeNames(numbered, NAME_LENGTH, end, scale);
  return shorter.length > names.length ? shorter : names;
}

/**
 * The names that do not overlap.
 * @param {{ spot: Spot, x: number }[]} standing from left to right
 * @param {number} length letters
 * @param {number} end
 * @param {Scale} scale
 */
function freeNames(standing, length, end, { small, textWidth }) {
  /** @type {{ text: string, x: number }[]} */
  const names = [];
  let free = -Infinity;
  for (const { spot, x } of standing) {
    const text = shorten(spot.location, length);
    const half = textWidth(text, small) / 2 + 4;
    if (x - half < free || x + half > end) continue;
    free = x + half;
    names.push({ text, x });
  }
  return names;
}

/**
 * How many rows of markers a strip has room for.
 * @param {CrossSectionLayout} layout
 * @param {Scale} scale
 * @param {number} [above] px that are taken
 */
export const rowsOf = ({ stripHeight }, { height, unit }, above = 0) =>
  Math.max(1, Math.floor((stripHeight - unit * (GROUND + ABOVE_GROUND) - above) / (height + 2)));

/**
 * Places the people of a level in their rooms, one upon the other. Each room counts those for whom
 * it has no place.
 * @param {Figure[]} people
 * @param {Strip} strip
 * @param {CrossSectionLayout} layout
 * @param {Scale} scale
 * @returns {{ markers: Marker[], crowds: Crowd[] }}
 */
export function stackPeople(people, strip, layout, scale) {
  const { height, unit } = scale;
  const most = rowsOf(layout, scale);
  const lowest = strip.ground - unit * ABOVE_GROUND - height / 2;
  /** @type {Map<Room, Figure[]>} */
  const crowds = new Map();
  for (const person of people) {
    const room = strip.roomOf.get(person.spotKey);
    if (room) crowds.set(room, [...(crowds.get(room) ?? []), person]);
  }
  const stacks = [...crowds].map(([room, crowd]) => {
    const count = countPresent(crowd);
    const step = crowdStep(count);
    const nowhere = { x: 0, y: 0, rows: most, beside: 0 };
    const { rows, beside, ...at } = step ? countPlace(String(count), room, strip, layout, scale) : nowhere;
    const inner = { left: room.left + 2, right: room.right - 2 - beside };
    const packed = packCrowd(room.key, crowd, { width: inner.right - inner.left, rows, stacked: true }, scale);
    const isSaid = Boolean(packed[0][0].more); // by the only marker, which has the room for itself
    if (isSaid) inner.right = room.right - 2;
    const markers = placeRows(packed, room.x, inner, (row) => lowest - row * (height + 2));
    return { markers, step, crowd: { ...room, step, ...at, count: isSaid ? null : count } };
  });
  return {
    markers: stacks.flatMap(({ markers }) => markers),
    crowds: stacks.filter(({ step }) => step).map(({ crowd }) => crowd),
  };
}

/**
 * Where the number of a room's people stands so that they lose no row by it: above them, behind the
 * room's name, or else beside them if there is one row.
 * @param {string} text
 * @param {Room} room
 * @param {Strip} strip
 * @param {CrossSectionLayout} layout
 * @param {Scale} scale
 */
function countPlace(text, room, { top, ground, names }, layout, scale) {
  const { small, unit, height } = scale;
  const width = scale.textWidth(text, small, 600);
  const most = rowsOf(layout, scale);
  const fewer = rowsOf(layout, scale, small * COUNT_LINE);
  const above = { x: room.x, y: top + small * 1.2, rows: fewer, beside: 0 };
  if (fewer === most && most > 1) return above;
  /** @param {{ text: string, x: number } | undefined} name */
  const half = (name) => (name ? scale.textWidth(name.text, small) / 2 : 0);
  const own = names.findLastIndex((name) => name.x > room.left && name.x < room.right);
  const next = names[own + 1];
  const begin = own < 0 ? Infinity : names[own].x + half(names[own]) + small * 0.25;
  const end = next ? next.x - half(next) - small * 0.4 : layout.right;
  if (begin + width <= end)
    return { x: begin + width / 2, y: ground + unit, rows: most, beside: 0 };
  if (most > 1) return above;
  const y = ground - unit * ABOVE_GROUND - height / 2 + small * 0.36;
  return { x: room.right - 5 - width / 2, y, rows: most, beside: width + 6 };
}

/**
 * The largest scale at which a room has places for twice as many people as there are for each room.
 * It follows their number alone: it stays the same while they walk. On a wall screen none of what
 * can be read from afar is given up for more people: they are counted.
 * @param {Level[]} levels
 * @param {number} people
 * @param {Frame} frame
 * @param {(room: number) => Scale} scaleFor
 */
export function scaleForCrowd(levels, people, frame, scaleFor) {
  const scales = (frame.isWall ? ROOMS_ON_WALL : ROOMS).map(scaleFor);
  const legible = scaleFor(LEGIBLE_ROOM);
  const fitting = scales.find((scale) => {
    const layout = layOutCrossSection(levels, frame, scale);
    const rooms = layout.strips.flatMap((strip) => strip.rooms);
    if (layout.height > frame.height + 1) return false;
    if (frame.isWall && scale.unit <= legible.unit) return true;
    const width = (layout.right - layout.left) / Math.max(1, rooms.length / levels.length);
    const columns = Math.floor(width / (scale.textWidth("0000", scale.text, 600) + scale.height));
    const places = columns * rowsOf(layout, scale);
    return places >= Math.max(2, Math.ceil((2 * people) / Math.max(1, rooms.length)));
  });
  return fitting ?? scales[scales.length - 1];
}
