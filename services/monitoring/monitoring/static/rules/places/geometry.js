// Plane geometry of a level: what is nearest to which beacon. Metres in, metres out. Pure.

/**
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ left: number, right: number, top: number, bottom: number }} Box
 */

/**
 * Whether the directory says where a spot is.
 * @template {{ x?: number | null, y?: number | null }} T
 * @param {T} spot
 * @returns {spot is T & Point}
 */
export const hasPosition = (spot) => Number.isFinite(spot.x) && Number.isFinite(spot.y);

// As `rules/positions.py` of the ingest service has them, which tells of such positions.
const FAR = 20;
const NEAR_METRES = 10;
const FEW = 4;
const SLIPS = 0.1; // of all; where more are far away, that is another building

/** @param {number[]} values */
const median = (values) => [...values].sort((value, other) => value - other)[values.length >> 1];

/**
 * The spots that lie far outside of the others, by a slip of the pen: to their scale, all others
 * would be one.
 * @template {{ x?: number | null, y?: number | null }} T
 * @param {T[]} spots
 * @returns {Set<T>}
 */
export function farOut(spots) {
  /** @type {Set<T>} */
  const far = new Set();
  const placed = spots.filter(hasPosition);
  if (placed.length < FEW) return far;
  for (const axis of /** @type {const} */ (["x", "y"])) {
    const middle = median(placed.map((spot) => spot[axis]));
    const away = placed.map((spot) => Math.abs(spot[axis] - middle));
    const most = FAR * Math.max(NEAR_METRES, median(away));
    placed.forEach((spot, index) => away[index] > most && far.add(spot));
  }
  return far.size > Math.max(1, placed.length * SLIPS) ? new Set() : far;
}

/**
 * @param {Point} point
 * @param {Point} other
 */
const squaredDistance = (point, other) => (point.x - other.x) ** 2 + (point.y - other.y) ** 2;

/**
 * The part of a convex polygon that is nearer to `a` than to `b`.
 * @param {Point[]} polygon
 * @param {Point} a
 * @param {Point} b
 */
function nearerPart(polygon, a, b) {
  const nx = b.x - a.x,
    ny = b.y - a.y;
  const limit = (b.x * b.x + b.y * b.y - a.x * a.x - a.y * a.y) / 2;
  /** @param {Point} p */
  const side = (p) => p.x * nx + p.y * ny - limit;
  const part = [];
  for (let i = 0; i < polygon.length; i += 1) {
    const from = polygon[i],
      to = polygon[(i + 1) % polygon.length];
    const sFrom = side(from),
      sTo = side(to);
    if (sFrom <= 0) part.push(from);
    if (sFrom < 0 !== sTo < 0 && sFrom !== sTo) {
      const t = sFrom / (sFrom - sTo);
      part.push({ x: from.x + t * (to.x - from.x), y: from.y + t * (to.y - from.y) });
    }
  }
  return part;
}

/**
 * The area around each spot that is nearest to it (Voronoi), within the box. The nearest others cut
 * it first, and what is too far away to cut it is skipped: 500 spots take milliseconds.
 * @param {Point[]} spots
 * @param {Box} box
 * @returns {Point[][]}
 */
export function zones(spots, box) {
  return spots.map((spot) => {
    const others = spots
      .map((other) => ({ other, squared: squaredDistance(spot, other) }))
      .filter(({ squared }) => squared > 1e-9)
      .sort((nearer, farther) => nearer.squared - farther.squared);
    let polygon = corners(box);
    for (const { other, squared } of others) {
      const reach = Math.max(...polygon.map((corner) => squaredDistance(spot, corner)));
      if (squared > 4 * reach) break;
      polygon = nearerPart(polygon, spot, other);
    }
    return polygon;
  });
}

/**
 * @param {Box} box
 * @returns {Point[]}
 */
export const corners = ({ left, right, top, bottom }) => [
  { x: left, y: top },
  { x: right, y: top },
  { x: right, y: bottom },
  { x: left, y: bottom },
];

/**
 * @param {Point[]} points
 * @returns {Box}
 */
export function bounds(points) {
  const xs = points.map((point) => point.x),
    ys = points.map((point) => point.y);
  return {
    left: Math.min(...xs),
    right: Math.max(...xs),
    top: Math.min(...ys),
    bottom: Math.max(...ys),
  };
}

/**
 * The floor that the spots lie on: their bounds and some room around.
 * @param {Point[]} spots
 * @returns {Box}
 */
export function floor(spots) {
  const box = bounds(spots);
  const margin = Math.max(4, (box.right - box.left) * 0.06, (box.bottom - box.top) * 0.06);
  return {
    left: box.left - margin,
    right: box.right + margin,
    top: box.top - margin,
    bottom: box.bottom + margin,
  };
}

/**
 * From where to where a convex polygon reaches at every height of a band; null where that is nowhere.
 * @param {Point[]} polygon
 * @param {number} top
 * @param {number} bottom
 */
export function chord(polygon, top, bottom) {
  const ends = [top, bottom].map((y) => {
    const xs = polygon.flatMap((from, index) => {
      const to = polygon[(index + 1) % polygon.length];
      if ((from.y - y) * (to.y - y) > 0 || from.y === to.y) return from.y === y ? [from.x] : [];
      return [from.x + ((to.x - from.x) * (y - from.y)) / (to.y - from.y)];
    });
    return { left: Math.min(...xs), right: Math.max(...xs) };
  });
  const left = Math.max(...ends.map((end) => end.left)),
    right = Math.min(...ends.map((end) => end.right));
  return left < right && Number.isFinite(right - left) ? { left, right } : null;
}
