// Ranges of time as people name them, in the viewer's zone: days with a change of clocks too. Pure.

/** @typedef {{ from: number, to: number }} Range unix seconds */

export const SHIFT_SECONDS = 12 * 3600; // who was heard before that has gone home
const HOUR_SECONDS = 3600;
const AROUND_SECONDS = 900;

/**
 * The midnight that begins a day, in unix seconds.
 * @param {number} timestamp of any time of a day
 * @param {number} [days] of so many days later
 */
function midnight(timestamp, days = 0) {
  const day = new Date(timestamp * 1000);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime() / 1000;
}

/**
 * @param {number} now unix seconds
 * @returns {Range}
 */
export const yesterday = (now) => ({ from: midnight(now, -1), to: midnight(now) });

/**
 * When the hours of a day begin, in unix seconds: 23 or 25 of them where the clocks change.
 * @param {number} timestamp of any time of that day
 */
export function hoursOfDay(timestamp) {
  const start = midnight(timestamp);
  const hours = Math.ceil((midnight(timestamp, 1) - start) / HOUR_SECONDS);
  return Array.from({ length: hours }, (_, hour) => start + hour * HOUR_SECONDS);
}

/**
 * @param {number} start
 * @returns {Range}
 */
export const hourFrom = (start) => ({ from: start, to: start + HOUR_SECONDS });

/**
 * What is shown of a moment: some of what was before and after it, too.
 * @param {number} moment
 * @returns {Range}
 */
export const around = (moment) => ({ from: moment - AROUND_SECONDS, to: moment + AROUND_SECONDS });
