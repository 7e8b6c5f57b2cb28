// What the page says, apart from how it is drawn. Ages and times are in seconds. Pure.

/** @typedef {"now" | "recent" | "stale"} Freshness */
/** @typedef {string | number | null | undefined} LevelName "unknown" and null: nobody knows */
/** @typedef {{ location?: string | null, mac?: string | null }} Place */

export const NOW_SECONDS = 60;
export const RECENT_SECONDS = 300;
export const GONE_SECONDS = 900; // then somebody is not on the plan any more, only in the list

/**
 * @param {number} age
 * @returns {Freshness}
 */
export function freshness(age) {
  if (age <= NOW_SECONDS) return "now";
  return age <= RECENT_SECONDS ? "recent" : "stale";
}

/**
 * When somebody was heard, by the server's clock, which the API's age counts from: a phone whose
 * clock is ahead must not stay "now" for ever, nor seem lost when it is behind.
 * @param {StaffMember} person
 * @param {number} asOf the time of the answer, in the server's unix seconds
 */
export function heardAt(person, asOf) {
  if (person.clock_skew_seconds) return person.timestamp + person.clock_skew_seconds;
  const counted = asOf - person.age_seconds;
  return person.timestamp - counted > 2 ? counted : person.timestamp;
}

/**
 * What is wrong with a phone's clock; "" where nothing is known to be.
 * @param {number | undefined} skew seconds by which it is behind
 */
export const clockText = (skew) =>
  skew ? `${duration(Math.abs(skew))} ${skew > 0 ? "behind" : "ahead"}` : "";

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 2 * 86400) {
    const minutes = Math.floor((seconds % 3600) / 60);
    return `${Math.floor(seconds / 3600)} h${minutes && seconds < 36000 ? ` ${minutes} min` : ""}`;
  }
  return `${Math.floor(seconds / 86400)} days`;
}

/**
 * While the page is blind, nobody knows how long ago somebody was heard: then it tells the time.
 * @param {number} heard
 * @param {number} age
 * @param {unknown} blind
 */
export const heardText = (heard, age, blind) => (blind ? `at ${clock(heard)}` : ageText(age));

/**
 * A limit as the first of these has it: the address, the viewer, the office.
 * @param {(string | null)[]} texts
 */
export const minutesOf = (...texts) =>
  texts.map((text) => Number.parseInt(text || "", 10)).find((minutes) => minutes > 0) ?? 0;

/** @param {number} age */
export function ageText(age) {
  const fresh = freshness(age);
  if (fresh === "now") return "now";
  return fresh === "recent" ? `${duration(age)} ago` : `stale ${duration(age)}`;
}

/**
 * @param {Date} day
 * @param {Date} other
 */
const sameDay = (day, other) => day.toDateString() === other.toDateString();

/**
 * In the viewer's zone; with the day only when it is not today, with the year when it is another.
 * @param {number} timestamp
 * @param {{ seconds?: boolean, today?: Date }} [options] `today`: the day that needs no mention
 */
export function clock(timestamp, { seconds = true, today = new Date() } = {}) {
  const moment = new Date(timestamp * 1000);
  const time = moment.toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds && { second: "2-digit" }),
  });
  if (sameDay(moment, today)) return time;
  const isThisYear = moment.getFullYear() === today.getFullYear();
  const year = isThisYear ? undefined : "numeric";
  return `${moment.toLocaleDateString([], { day: "numeric", month: "short", year })}, ${time}`;
}

/** @param {number} timestamp */
export function utc(timestamp) {
  return `${new Date(timestamp * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/**
 * A beacon's id for people: a MAC in pairs; any other says its kind itself.
 * @param {string} mac
 */
export const macText = (mac) => (mac.includes(":") ? mac : (mac.match(/../g) ?? [mac]).join(":"));
/**
 * All ids of a beacon, any of which may be heard, first the one by which the directory lists it.
 * @typedef {{ mac: string, aliases?: string[] }} Named
 * @param {Named} beacon
 */
export const idsOf = ({ mac, aliases = [] }) => [mac, ...aliases];
/** @param {LevelName} level */
export const isUnknown = (level) => level === "unknown" || level === null || level === undefined;
/** @param {LevelName} level */
export const levelText = (level) => (isUnknown(level) ? "level unknown" : `level ${level}`);
/** @param {LevelName} level */
export const levelTitle = (level) => (isUnknown(level) ? "Unknown level" : `Level ${level}`);

/** @param {Place} place */
export function spotText({ location, mac }) {
  if (location && location !== "unknown") return location;
  return mac ? `unknown beacon ${macText(mac)}` : "unknown location";
}

/** @param {Place & { level?: LevelName }} place */
export const placeText = (place) => `${levelText(place.level)}, ${spotText(place)}`;
/** @param {number} count */
export const peopleText = (count) => (count === 1 ? "1 person" : `${count} people`);

/** By number, then by name, so that a refresh never moves a row without a reason. */
export const compare = new Intl.Collator(undefined, { numeric: true }).compare;

/**
 * The monitoring service's verdict on the whole system, in one sentence or two.
 * @param {Verdict} verdict
 */
export const verdictText = ({ what, rest, since }) =>
  rest ? `${what} since ${clock(since)}. ${rest}` : what;

/**
 * A read that failed; times in unix seconds; it is made every `seconds`.
 * @typedef {{ failure: "" | "busy" | "ended" | "network" | "open" | "unknown", failingSince: number,
 *   takenAt: number, seconds: number, now: () => number, verdict: Verdict | null }} Failing
 */

/**
 * What is wrong, since when, and what happens next; "" while all is well. It stays the same while
 * that does: a screen reader says each change.
 * @param {Failing} source
 */
export function banner({ failure, failingSince, takenAt, seconds, verdict }) {
  if (!failure) return "";
  const since = ` since ${clock(failingSince)}`;
  const shown = takenAt ? "" : " Nothing was read before that could be shown.";
  if (failure === "ended")
    return `Your log-in has ended: it has expired, or was revoked.${shown}`;
  const unread = `Waymark cannot read this${since}, so it cannot be told now.`;
  const what = {
    busy: `Waymark is busy${since}: it works, but more is asked at once than it takes.`,
    network: `This page cannot reach Waymark${since}.`,
    open: unread,
    unknown: unread,
  };
  const says = verdict ? verdictText(verdict) : what[failure];
  return `${says}${shown} It is tried again every ${seconds} seconds.`;
}

/**
 * What waits in the spools, and how old is what is shown; "" when it is of now, or nothing.
 * @param {Failing} source
 */
export function bannerAge(source) {
  const { failure, takenAt, verdict } = source;
  const kept = (failure && verdict?.kept) || "";
  if (!failure || !takenAt) return kept;
  const age = duration(source.now() - takenAt);
  return `${kept} Below is what was known at ${clock(takenAt)}, ${age} ago.`.trim();
}

/**
 * Whether answers have all people that there are: an API that does not say so has them.
 * @param {({ complete?: boolean } | null)[]} answers
 */
export const isComplete = (...answers) => answers.every((answer) => answer?.complete ?? true);
