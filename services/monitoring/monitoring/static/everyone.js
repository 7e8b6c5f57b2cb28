// Who is where, from what the API says of staff and of beacons.
import {
  compare,
  freshness,
  GONE_SECONDS,
  heardAt as heardTime,
  heardText,
  isUnknown,
  placeText,
  spotText,
} from "./words.js";

// What the directory says of a spot that staff are at: by beacon, else by name, else off the plan.
export function spots(beacons) {
  const known = beacons.map((beacon) => ({
    ...beacon,
    key: beacon.mac,
    location: spotText(beacon),
  }));
  return {
    known,
    byMac: new Map(known.map((spot) => [spot.mac, spot])),
    byName: new Map(known.map((spot) => [`${spot.level}\n${spot.location}`, spot])),
  };
}

// Everybody ever heard, by name, with the spot where they are (undefined: off the plan).
export function everyone(staff, directory, picked) {
  const now = staff.now();
  const asOf = staff.failure ? staff.takenAt : now; // blind: whom we saw then, however long ago
  const list = (staff.data?.data ?? []).map((found) => {
    const heardAt = heardTime(found, staff.data.as_of);
    const level = isUnknown(found.level) ? "unknown" : String(found.level);
    const age = now - heardAt;
    const byMac = directory.byMac.get(found.mac);
    const spot =
      byMac?.level === level ? byMac : directory.byName.get(`${level}\n${found.location}`);
    const id = String(found.staff_id);
    const title = `Staff ${id}: ${placeText({ ...found, level })}, ${heardText(heardAt, age, staff.failure)}`;
    return {
      ...found,
      id,
      level,
      age,
      heardAt,
      title,
      spot,
      fresh: freshness(age),
      gone: asOf - heardAt > GONE_SECONDS,
      ahead: found.timestamp - heardAt,
      picked: id === picked,
    };
  });
  list.sort((one, other) => compare(one.id, other.id));
  list.forEach((one, order) => {
    one.order = order;
    one.spotKey = one.spot?.key ?? `${one.level} ${one.mac}`;
  });
  return list;
}

// The spots to draw: the directory's, and those where somebody is that it does not know.
export function drawn(directory, present) {
  const lost = new Map();
  for (const one of present)
    if (!one.spot)
      lost.set(one.spotKey, {
        key: one.spotKey,
        level: one.level,
        location: spotText(one),
        x: null,
        y: null,
      });
  const busy = new Set(present.map((one) => one.spotKey));
  const known = directory.known.filter((spot) => Number.isFinite(spot.x) || busy.has(spot.key));
  return [...known, ...lost.values()];
}
