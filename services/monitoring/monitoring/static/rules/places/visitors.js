// Who was in a room around a time: which visits count, and what is said of them. Pure.
import { SILENCE_SECONDS } from "../histories/visits.js";
import { clock, levelText, peopleText } from "../words.js";

/**
 * A place, its level ("": any), a time, and how far around it.
 * @typedef {{ level: string, location: string, at: number, minutes: number }} Question
 * @typedef {{ from: number, to: number }} Span unix seconds
 */

/**
 * @param {Question} question
 * @param {number} now
 * @returns {Span} empty when it is still to come
 */
export const spanOf = ({ at, minutes }, now) => ({
  from: at - minutes * 60,
  to: Math.min(at + minutes * 60, Math.floor(now)),
});

/**
 * What to read of a span: somewhat more tells who had been there before, and stayed.
 * @param {Span} span
 * @returns {Span}
 */
export const widened = ({ from, to }) => ({
  from: Math.max(0, from - SILENCE_SECONDS),
  to: to + SILENCE_SECONDS,
});

/**
 * @template {Span} V
 * @param {V[]} visits
 * @param {Span} span
 */
export const within = (visits, span) =>
  visits.filter((visit) => visit.to >= span.from && visit.from <= span.to);

/**
 * From when to when; beyond the span nothing was read.
 * @param {Span} visit
 * @param {Span} span
 */
export function stayText(visit, span) {
  const day = new Date(span.from * 1000);
  /** @param {number} time */
  const text = (time) => clock(time, { seconds: false, today: day });
  const from = visit.from < span.from ? `before ${text(span.from)}` : text(visit.from);
  const to = visit.to > span.to ? `after ${text(span.to)}` : text(visit.to);
  return from === to ? `at ${from}` : `${from} – ${to}`;
}

/**
 * @param {Question} question
 * @param {Span} span
 * @param {{ staff_id: string | number }[]} visits those within
 * @param {string} [whose] of which team they are
 */
export function answerText({ level, location }, span, visits, whose = "") {
  const people = new Set(visits.map((person) => person.staff_id)).size;
  const from = clock(span.from, { seconds: false });
  const to = clock(span.to, { seconds: false, today: new Date(span.from * 1000) });
  const where = `in ${location}, ${level ? levelText(level) : "any level"}, between ${from} and ${to}.`;
  return people ? `${peopleText(people)}${whose} heard ${where}` : `Nobody${whose} was heard ${where}`;
}

/**
 * Replay of somebody at a time, and somewhat before and after their visit.
 * @param {Span & { staff_id: string | number }} visit
 * @param {number} at
 */
export function replayAddress({ staff_id: id, from, to }, at) {
  const margin = 900;
  const time = Math.min(Math.max(at, from), to);
  return `/monitoring/replay?person=${encodeURIComponent(id)}&from=${from - margin}&to=${to + margin}&at=${time}`;
}
