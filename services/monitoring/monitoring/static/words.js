// What the page says, apart from how it is drawn. Ages and times are in seconds.

export function freshness(age) {
  if (age < 60) return "now";
  return age < 300 ? "recent" : "stale";
}

export function ageText(age) {
  if (age < 60) return "now";
  const minutes = Math.floor(age / 60);
  return age < 300 ? `${minutes} min ago` : `stale ${minutes} min`;
}

export function clock(timestamp) {
  return new Date(timestamp * 1000).toLocaleTimeString();
}

export function summary(count, takenAt) {
  const people = count === 1 ? "1 person" : `${count} people`;
  return `${people} heard in the 15 minutes before ${clock(takenAt)}`;
}

export function banner(snapshot, networkGone, now) {
  if (!networkGone && (!snapshot || snapshot.circuit === "closed")) return "";
  const shown = snapshot?.taken_at
    ? ` Below is what was known at ${clock(snapshot.taken_at)}, ${Math.round((now - snapshot.taken_at) / 60)} min ago.`
    : "";
  if (networkGone) return `This page cannot reach Waymark. It keeps trying every 30 seconds.${shown}`;
  if (snapshot.circuit === "open") {
    return `The circuit is open: no ingest service answers, so nobody's position can be told now. It is tried again every 30 seconds.${shown}`;
  }
  return `Positions cannot be read, so nobody's position can be told now. It is tried again every 30 seconds.${shown}`;
}

// By number, then by name, so that a refresh never moves a row without a reason.
export function staffOrder(one, other) {
  return String(one.staff_id).localeCompare(String(other.staff_id), undefined, { numeric: true });
}
