// Where everything on the plan of a level stands: positions in metres in, shapes in px out. Pure.
/** @import { Box, Point } from "../rules/places/geometry.js" */
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
import { bounds, chord, corners, farOut, floor, hasPosition, zones } from "../rules/places/geometry.js";
import { crowdStep, packCrowd, placeRows } from "./crowd_layout.js";
import { countPresent, shorten } from "./marker_layout.js";

/**
 * A spot of a level: where a beacon hangs, or a place that the directory does not know.
 * @typedef {object} Spot
 * @property {string} key
 * @property {string} level
 * @property {string} location
 * @property {number | null} [x] metres; a spot without a position gets a box below the floor
 * @property {number | null} [y]
 * @property {string} [state] for its colour
 * @property {string} [note] a second line
 * @property {string} [title]
 *
 * @typedef {{ text: string, x: number, y: number, px: number }} Label
 *
 * What is nearer to a spot than to any other, in px.
 * @typedef {object} Zone
 * @property {Spot} spot
 * @property {Point} center where its beacon is drawn
 * @property {Box} box
 * @property {Point[]} points
 * @property {Label | null} name null where there is no room for it
 * @property {Label | null} note
 *
 * @typedef {object} PlanLayout
 * @property {number} width
 * @property {number} height
 * @property {{ x: number, y: number, width: number, height: number, rx: number } | null} outline
 * @property {Label | null} aside the heading of the boxes below the floor
 * @property {Zone[]} zones
 */

// Distances may be stretched up to this ratio to use the room: who is where matters more than metres.
const MAX_STRETCH = 1.6;
const MAX_STRETCH_NARROW = 2.6; // on a phone there is room below
const NARROW_PX = 560;

/**
 * @param {Spot[]} spots
 * @param {{ width: number, height: number }} frame px; the height may be Infinity
 * @param {Scale} scale
 * @returns {PlanLayout}
 */
export function layOutPlan(spots, frame, scale) {
  const { unit } = scale;
  const far = farOut(spots);
  const placed = spots.filter(hasPosition).filter((spot) => !far.has(spot));
  const unplaced = spots.filter((spot) => far.has(spot) || !hasPosition(spot));
  const boxes = boxGrid(unplaced.length, frame.width, unit);
  const onFloor = placed.length ? layOutFloor(placed, frame, boxes.height, scale) : null;
  const used = onFloor?.height ?? 0;
  const top = used + unit * 1.4;
  const below = unplaced.map((spot, index) => {
    const box = boxes.at(index, top + unit * 0.5);
    const center = { x: (box.left + box.right) / 2, y: box.top + boxes.cell.height * 0.35 };
    return layOutZone(spot, center, box, corners(box), frame.width, scale);
  });
  const outside = far.size ? ", or one far outside" : "";
  const text = placed.length
    ? `Not on the plan: no position in the directory${outside}`
    : "No position in the directory";
  return {
    width: frame.width,
    height: Math.max(used + boxes.height, unit * 8),
    outline: onFloor?.outline ?? null,
    aside: unplaced.length ? { text, x: 2, y: top, px: scale.small } : null,
    zones: [...(onFloor?.zones ?? []), ...below],
  };
}

/**
 * The floor, and on it the zone of each spot that has a position.
 * @param {(Spot & Point)[]} spots
 * @param {{ width: number, height: number }} frame
 * @param {number} reserved px below the floor
 * @param {Scale} scale
 */
function layOutFloor(spots, frame, reserved, scale) {
  const box = floor(spots);
  const metres = { across: box.right - box.left, down: box.bottom - box.top };
  const isNarrow = frame.width < NARROW_PX;
  const share = isNarrow ? 1.2 : 0.6;
  const stretch = isNarrow ? MAX_STRETCH_NARROW : MAX_STRETCH;
  const available = frame.height === Infinity ? frame.width * share : frame.height - reserved;
  const room = Math.max(available, scale.unit * 12);
  const wide = frame.width / metres.across,
    tall = room / metres.down;
  const across = Math.min(wide, tall * stretch),
    down = Math.min(tall, wide * stretch);
  const width = metres.across * across,
    height = metres.down * down,
    left = (frame.width - width) / 2;
  /** @param {Point} point */
  const toPx = (point) => ({
    x: left + (point.x - box.left) * across,
    y: (point.y - box.top) * down,
  });
  return {
    height,
    outline: { x: left + 1, y: 1, width: width - 2, height: height - 2, rx: scale.unit * 0.6 },
    zones: zones(spots, box).map((polygon, index) => {
      const points = polygon.map(toPx);
      const spot = spots[index];
      return layOutZone(spot, toPx(spot), bounds(points), points, frame.width, scale);
    }),
  };
}

/**
 * The boxes for spots without a position, in rows as wide as the frame.
 * @param {number} count
 * @param {number} width
 * @param {number} unit
 */
function boxGrid(count, width, unit) {
  const cell = { width: Math.min(width, unit * 10), height: unit * 4.2 };
  const columns = Math.max(1, Math.floor(width / cell.width));
  const rows = Math.ceil(count / columns);
  /**
   * @param {number} index
   * @param {number} top
   * @returns {Box}
   */
  const at = (index, top) => {
    const x = (index % columns) * cell.width,
      y = top + Math.floor(index / columns) * cell.height;
    return { left: x + 2, right: x + cell.width - 4, top: y, bottom: y + cell.height - 6 };
  };
  return { cell, at, height: rows ? rows * cell.height + unit * 1.8 : 0 };
}

/**
 * @param {Spot} spot
 * @param {Point} center
 * @param {Box} box
 * @param {Point[]} points
 * @param {number} frameWidth
 * @param {Scale} scale
 * @returns {Zone}
 */
function layOutZone(spot, center, box, points, frameWidth, scale) {
  const { unit, text, textWidth } = scale;
  const room = box.right - box.left;
  const noteFits = spot.note && textWidth(spot.note, text, 600) < room - 4;
  return {
    spot,
    center,
    box,
    points,
    name: nameLabel({ spot, center, box }, frameWidth, scale),
    note: noteFits
      ? { text: spot.note ?? "", x: center.x, y: center.y + unit * 1.15, px: text }
      : null,
  };
}

/**
 * The name of a zone, and how many people are in a crowded one: that stands there also where the name
 * has no room.
 * @param {{ spot: Spot, center: Point, box: Box }} zone
 * @param {number} frameWidth
 * @param {Scale} scale
 * @param {number} [people]
 * @returns {Label | null}
 */
export function nameLabel({ spot, center, box }, frameWidth, { unit, small, textWidth }, people = 0) {
  const count = crowdStep(people) ? String(people) : "";
  const room = box.right - box.left - (count ? textWidth(` · ${count}`, small) : 0);
  const name = shorten(spot.location, Math.max(3, Math.floor(room / (small * 0.52))));
  const isLegible = name.length > Math.min(3, spot.location.length - 1);
  const fits = textWidth(name, small) < room - 4 && box.bottom - box.top > unit * 1.6 && isLegible;
  const text = [fits && name, count].filter(Boolean).join(" · ");
  const half = textWidth(text, small) / 2 + 3;
  const x = Math.min(Math.max(center.x, half), frameWidth - half);
  return text ? { text, x, y: center.y - unit * 0.45, px: small } : null;
}

/**
 * How many are in each spot, by its key.
 * @param {Figure[]} people
 */
export const countBySpot = (people) =>
  new Map([...bySpot(people)].map(([key, crowd]) => [key, countPresent(crowd)]));

/**
 * Places people under the name of their spot, side by side, as many as its zone has room for.
 * @param {Figure[]} people
 * @param {Zone[]} zones
 * @param {Scale} scale
 * @returns {Marker[]}
 */
export function placePeople(people, zones, scale) {
  const byKey = new Map(zones.map((zone) => [zone.spot.key, zone]));
  return [...bySpot(people)].flatMap(([key, crowd]) => {
    const zone = byKey.get(key);
    return zone ? placeCrowd(key, crowd, zone, scale) : [];
  });
}

/**
 * A zone has corners: with each row that is used, what all of them have room for may get narrower.
 * So there are as few rows as show most people, and those as they are rather than compact.
 * @param {string} key
 * @param {Figure[]} crowd
 * @param {Zone} zone
 * @param {Scale} scale
 */
function placeCrowd(key, crowd, { box, center, points }, scale) {
  const { height, unit } = scale;
  const top = center.y + unit * 0.95 - height / 2;
  const most = Math.max(1, Math.floor((box.bottom - center.y - unit * 0.3) / (height + 2)));
  /** @type {Marker[]} */
  let best = [];
  let bestShown = -1;
  for (let count = 1; count <= most; count += 1) {
    const room = chord(points, top, top + count * (height + 2)) ?? (count === 1 ? box : null);
    if (!room) break;
    const inner = { left: room.left + 2, right: room.right - 2 };
    const size = { width: inner.right - inner.left, rows: count };
    const rows = packCrowd(key, crowd, size, scale);
    const markers = placeRows(rows, center.x, inner, (row) => top + height / 2 + row * (height + 2));
    const shown = markers.filter((marker) => marker.person).length + (isLarge(markers) ? 0.5 : 0);
    if (shown > bestShown) [best, bestShown] = [markers, shown];
    if (isLarge(markers)) break;
  }
  return best;
}

/** Nobody is counted, and nobody compact. @param {Marker[]} markers */
const isLarge = (markers) => markers.every((marker) => !marker.compact);

/** @param {Figure[]} people */
function bySpot(people) {
  /** @type {Map<string, Figure[]>} */
  const crowds = new Map();
  for (const person of people) {
    const crowd = crowds.get(person.spotKey);
    if (crowd) crowd.push(person);
    else crowds.set(person.spotKey, [person]);
  }
  return crowds;
}

/**
 * The points of a trail, from the keys of its spots; spots that are not drawn are left out.
 * @param {string[]} keys
 * @param {Zone[]} zones
 * @returns {Point[]}
 */
export function trailPoints(keys, zones) {
  const centers = new Map(zones.map((zone) => [zone.spot.key, zone.center]));
  return keys.flatMap((key) => centers.get(key) ?? []);
}
