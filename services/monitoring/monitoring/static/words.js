// What the page says, apart from how it is drawn. Ages and times are in seconds.
import { el, setAttribute, setText } from "./dom.js";

export const NOW_SECONDS = 60;
export const RECENT_SECONDS = 300;
export const GONE_SECONDS = 900; // then somebody is not on the plan any more, only in the list

export function freshness(age) {
  if (age <= NOW_SECONDS) return "now";
  return age <= RECENT_SECONDS ? "recent" : "stale";
}

// When somebody was heard: a phone whose clock is ahead must not stay "now" for ever, so then it is
// when the detection was received, which the API's age counts from.
export function heardAt(found, asOf) {
  const counted = asOf - found.age_seconds;
  return found.timestamp - counted > 2 ? counted : found.timestamp;
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 2 * 86400) {
    const minutes = Math.floor((seconds % 3600) / 60);
    return `${Math.floor(seconds / 3600)} h${minutes && seconds < 36000 ? ` ${minutes} min` : ""}`;
  }
  return `${Math.floor(seconds / 86400)} days`;
}

// While blind, nobody can say how long it is since somebody was heard: then it is the time that counts.
export const heardText = (heard, age, blind) => (blind ? `at ${clock(heard)}` : ageText(age));

export function ageText(age) {
  const fresh = freshness(age);
  if (fresh === "now") return "now";
  return fresh === "recent" ? `${duration(age)} ago` : `stale ${duration(age)}`;
}

const sameDay = (one, other) => one.toDateString() === other.toDateString();

// The viewer's zone; the day only when it is not today.
export function clock(timestamp, { seconds = true } = {}) {
  const moment = new Date(timestamp * 1000);
  const time = moment.toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds && { second: "2-digit" }),
  });
  if (sameDay(moment, new Date())) return time;
  return `${moment.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}

export function utc(timestamp) {
  return `${new Date(timestamp * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

// A <time> whose text is `text` (else the clock) and which tells both zones on hover.
export function timeElement(timestamp, text) {
  return updateTime(el("time"), timestamp, text);
}

export function updateTime(node, timestamp, text) {
  setAttribute(node, "datetime", new Date(timestamp * 1000).toISOString());
  setAttribute(node, "title", `${new Date(timestamp * 1000).toLocaleString()} · ${utc(timestamp)}`);
  setText(node, text ?? clock(timestamp));
  return node;
}

export const macText = (mac) => (mac.match(/../g) ?? [mac]).join(":");
export const isUnknown = (level) => level === "unknown" || level === null || level === undefined;
export const levelText = (level) => (isUnknown(level) ? "level unknown" : `level ${level}`);
export const Level = (level) => (isUnknown(level) ? "Unknown level" : `Level ${level}`);

export function spotText({ location, mac }) {
  if (location && location !== "unknown") return location;
  return mac ? `unknown beacon ${macText(mac)}` : "unknown location";
}

export const placeText = (found) => `${levelText(found.level)}, ${spotText(found)}`;
export const people = (count) => (count === 1 ? "1 person" : `${count} people`);

// By number, then by name, so that a refresh never moves a row without a reason.
export const compare = new Intl.Collator(undefined, { numeric: true }).compare;

export function levelOrder(one, other) {
  return isUnknown(one) - isUnknown(other) || compare(String(one), String(other));
}

// What is wrong, since when, and what happens next; "" while all is well.
export function banner(source) {
  if (!source.failure) return "";
  const now = source.now();
  const since = ` since ${clock(source.failingSince)}`;
  const shown = source.takenAt
    ? ` Below is what was known at ${clock(source.takenAt)}, ${duration(now - source.takenAt)} ago.`
    : " Nothing was read before that could be shown.";
  const next = ` It is tried again every ${source.seconds} seconds.`;
  const what = {
    network: `This page cannot reach Waymark${since}.`,
    open: `The circuit is open${since}: no ingest service answers, so this cannot be told now.`,
    unknown: `Waymark cannot read this${since}, so it cannot be told now.`,
  };
  return what[source.failure] + shown + next;
}
