// Where everything on the cross-section of the building stands: levels in, shapes in px out. Pure.
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
/** @import { Spot } from "./plan_layout.js" */
import { isUnknown, levelTitle } from "../rules/words.js";
import { bounds, hasPosition } from "../rules/geometry.js";
import { overflowMarker, personMarker, shorten } from "./marker_layout.js";

/**
 * @typedef {{ level: string, spots: Spot[] }} Level
 *
 * One level: a strip of the building, with its spots side by side on the ground.
 * @typedef {object} Strip
 * @property {string} level
 * @property {string} title
 * @property {number} top
 * @property {number} ground
 * @property {number[]} ticks the x of each spot that has a position
 * @property {{ text: string, x: number }[]} names those that have room
 * @property {Map<string, number>} spotX the x of each spot, by its key
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

/**
 * @param {Level[]} levels the lowest first
 * @param {{ width: number, height: number }} frame px
 * @param {Scale} scale
 * @returns {CrossSectionLayout}
 */
export function layOutCrossSection(levels, { width, height }, scale) {
  const { unit } = scale;
  const left = unit * (width > WIDE_PX ? 6.2 : 3.4);
  const stripHeight = Math.max(unit * 3.6, height / Math.max(1, levels.length));
  const placed = levels.flatMap((one) => one.spots.filter(hasPosition));
  const box = placed.length ? bounds(placed) : { left: 0, right: 1 };
  const metres = Math.max(1, box.right - box.left);
  const inner = { left: left + unit * 3, right: width - unit * 3 };
  /** @param {number} x metres */
  const toPx = (x) => inner.left + ((x - box.left) / metres) * (inner.right - inner.left);
  const strips = fromTheTop(levels).map(({ level, spots }, index) => {
    const top = index * stripHeight;
    return {
      level,
      title: stripTitle(level, width),
      top,
      ground: top + stripHeight - unit * 1.3,
      ...layOutSpots(spots, toPx, inner, width, scale),
    };
  });
  const right = width - unit * 0.4;
  return { width, height: stripHeight * levels.length, left, right, stripHeight, strips };
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
 * @param {number} width
 */
function stripTitle(level, width) {
  if (width > WIDE_PX) return isUnknown(level) ? "Unknown" : levelTitle(level);
  return isUnknown(level) ? "?" : levelTitle(level).replace("Level ", "L");
}

/**
 * Spots stand at their x, and those without a position behind the last one; on a level where no
 * spot has a position, they are spread over its width. A name that would overlap is left out.
 * @param {Spot[]} spots
 * @param {(x: number) => number} toPx
 * @param {{ left: number, right: number }} inner
 * @param {number} width
 * @param {Scale} scale
 */
function layOutSpots(spots, toPx, inner, width, scale) {
  const placed = spots.filter(hasPosition).sort((one, other) => one.x - other.x);
  const unplaced = spots.filter((spot) => !hasPosition(spot));
  /** @type {Map<string, number>} */
  const spotX = new Map();
  /** @type {{ text: string, x: number }[]} */
  const names = [];
  let free = -Infinity;
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} end
   */
  const addName = (text, x, end) => {
    const half = scale.textWidth(text, scale.small) / 2 + 4;
    if (x - half < free || x + half > end) return;
    free = x + half;
    names.push({ text, x });
  };
  for (const spot of placed) {
    const x = toPx(spot.x);
    spotX.set(spot.key, x);
    addName(shorten(spot.location, NAME_LENGTH), x, width);
  }
  unplaced.forEach((spot, index) => {
    const step = (inner.right - inner.left) / unplaced.length;
    const x = placed.length ? inner.right : inner.left + (index + 0.5) * step;
    spotX.set(spot.key, x);
    if (!placed.length) addName(shorten(spot.location, UNPLACED_NAME_LENGTH), x, Infinity);
  });
  return { ticks: placed.map((spot) => toPx(spot.x)), names, spotX };
}

/**
 * Places the people of a level above their spots. Where two would overlap, the second stands on the
 * first; where the strip is full, those without room are counted in one marker.
 * @param {Figure[]} people
 * @param {Strip} strip
 * @param {CrossSectionLayout} layout
 * @param {Scale} scale
 * @returns {Marker[]}
 */
export function stackPeople(people, strip, { left, right }, scale) {
  const { height, unit } = scale;
  const rowHeight = height + 2;
  const count = Math.max(1, Math.floor((strip.ground - strip.top - unit * 0.3) / rowHeight));
  const ends = Array.from({ length: count }, () => -Infinity); // of each row, from the ground up
  /**
   * @param {number} x
   * @param {number} width
   */
  const clamp = (x, width) => Math.min(Math.max(x, left + width / 2 + 2), right - width / 2);
  const standing = people
    .map((person) => ({ person, x: strip.spotX.get(person.spotKey) ?? right }))
    .sort((one, other) => one.x - other.x || one.person.order - other.person.order);
  /** @type {Marker[]} */
  const markers = [];
  /** @type {Figure[]} */
  const hidden = [];
  for (const { person, x } of standing) {
    const marker = personMarker(person, scale, { x, y: 0 });
    marker.px = clamp(x, marker.width);
    let row = ends.findIndex((end) => end <= marker.px - marker.width / 2);
    if (row < 0) {
      // No room above the spot: next to it, unless that would be another spot's place.
      row = ends.indexOf(Math.min(...ends));
      const nextTo = ends[row] + marker.width / 2;
      if (nextTo - marker.px > unit * 4 || nextTo + marker.width / 2 > right) {
        hidden.push(person);
        continue;
      }
      marker.px = nextTo;
    }
    ends[row] = marker.px + marker.width / 2 + 3;
    marker.py = strip.ground - unit * 0.35 - height / 2 - row * rowHeight;
    markers.push(marker);
  }
  const last = hidden.length ? markers.pop() : undefined;
  if (!last?.person) return markers;
  // The last marker makes room for the count of those who found none.
  const at = { x: last.px, y: last.py };
  const overflow = overflowMarker(strip.level, [last.person, ...hidden], scale, at);
  return [...markers, { ...overflow, px: clamp(last.px, overflow.width) }];
}
