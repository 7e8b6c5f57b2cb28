// From detections to visits: somebody stays in a spot from the first to the last detection there.

export const SILENCE_SECONDS = 300; // without a detection for so long, nobody knows where they were

// Detections newest first, as the API gives them; visits oldest first.
export function visits(detections) {
  const found = [];
  for (let i = detections.length - 1; i >= 0; i -= 1) {
    const one = detections[i];
    const last = found.at(-1);
    const heardOn = last && one.timestamp - last.to <= SILENCE_SECONDS;
    if (
      heardOn &&
      last.level === one.level &&
      last.location === one.location &&
      (one.location !== "unknown" || last.mac === one.mac)
    ) {
      last.to = one.timestamp;
      last.count += 1;
    } else {
      if (heardOn) last.to = one.timestamp; // on the way; the next spot begins when it is heard
      found.push({
        level: one.level,
        location: one.location,
        mac: one.mac,
        x: one.x,
        y: one.y,
        from: one.timestamp,
        to: one.timestamp,
        count: 1,
      });
    }
  }
  return found;
}

// The visit at a time, or the last one before it; `there` is false when it was over by then.
export function visitAt(list, time) {
  let low = 0,
    high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].from <= time) low = middle + 1;
    else high = middle;
  }
  const visit = list[low - 1];
  return visit && { visit, index: low - 1, there: time <= visit.to };
}

// Seconds in each spot, longest first.
export function dwell(list) {
  const spots = new Map();
  for (const visit of list) {
    const key = `${visit.level}\n${visit.location}\n${visit.location === "unknown" ? visit.mac : ""}`;
    const spot = spots.get(key) ?? {
      key,
      level: visit.level,
      location: visit.location,
      mac: visit.mac,
      seconds: 0,
      visits: 0,
    };
    spot.seconds += visit.to - visit.from;
    spot.visits += 1;
    spots.set(key, spot);
  }
  return [...spots.values()].sort((one, other) => other.seconds - one.seconds);
}
