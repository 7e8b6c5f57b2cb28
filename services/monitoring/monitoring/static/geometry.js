// Plane geometry of a level: what is nearest to which beacon. Metres in, metres out.

// The part of a convex polygon that is nearer to `a` than to `b`.
function nearer(polygon, a, b) {
  const nx = b.x - a.x,
    ny = b.y - a.y;
  const limit = (b.x * b.x + b.y * b.y - a.x * a.x - a.y * a.y) / 2;
  const side = (p) => p.x * nx + p.y * ny - limit;
  const kept = [];
  for (let i = 0; i < polygon.length; i += 1) {
    const from = polygon[i],
      to = polygon[(i + 1) % polygon.length];
    const sFrom = side(from),
      sTo = side(to);
    if (sFrom <= 0) kept.push(from);
    if (sFrom < 0 !== sTo < 0 && sFrom !== sTo) {
      const t = sFrom / (sFrom - sTo);
      kept.push({ x: from.x + t * (to.x - from.x), y: from.y + t * (to.y - from.y) });
    }
  }
  return kept;
}

// The area around each spot that is nearest to it (Voronoi), within the box. The nearest others
// come first, and the rest are too far to cut: 500 spots take milliseconds.
export function zones(spots, box) {
  const corners = [
    { x: box.left, y: box.top },
    { x: box.right, y: box.top },
    { x: box.right, y: box.bottom },
    { x: box.left, y: box.bottom },
  ];
  const far = (one, other) => (one.x - other.x) ** 2 + (one.y - other.y) ** 2;
  return spots.map((spot) => {
    const others = spots
      .map((other) => ({ other, squared: far(spot, other) }))
      .filter(({ squared }) => squared > 1e-9)
      .sort((one, two) => one.squared - two.squared);
    let polygon = corners;
    for (const { other, squared } of others) {
      const reach = Math.max(...polygon.map((corner) => far(spot, corner)));
      if (squared > 4 * reach) break;
      polygon = nearer(polygon, spot, other);
    }
    return polygon;
  });
}

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

// The floor that the spots lie on: their bounds and some room around.
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
