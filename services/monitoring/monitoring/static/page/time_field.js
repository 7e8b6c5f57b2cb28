// Fields of type datetime-local: they hold a time in the viewer's zone.
import { inputById } from "./dom.js";

/**
 * What was set last, by field: the hour that a change of clocks repeats is two times of one name.
 * @type {Map<string, { value: string, timestamp: number }>}
 */
const set = new Map();

/** @param {string} id */
export function secondsOf(id) {
  const { value } = inputById(id);
  const last = set.get(id);
  return last?.value === value ? last.timestamp : Math.floor(new Date(value).getTime() / 1000);
}

/**
 * Empties the field for a time that no calendar has: an address may say any number.
 * @param {string} id
 * @param {number} timestamp unix seconds
 */
export function setSeconds(id, timestamp) {
  const zoneMinutes = new Date(timestamp * 1000).getTimezoneOffset();
  const local = new Date((timestamp - zoneMinutes * 60) * 1000);
  inputById(id).value = Number.isNaN(local.getTime()) ? "" : local.toISOString().slice(0, 19);
  const { value } = inputById(id);
  if (value) set.set(id, { value, timestamp });
  else set.delete(id);
}
