// Fields of type datetime-local: they hold a time in the viewer's zone.
import { inputById } from "./dom.js";

/** @param {string} id */
export const secondsOf = (id) => Math.floor(new Date(inputById(id).value).getTime() / 1000);

/**
 * Empties the field for a time that no calendar has: an address may say any number.
 * @param {string} id
 * @param {number} timestamp unix seconds
 */
export function setSeconds(id, timestamp) {
  const zoneMinutes = new Date(timestamp * 1000).getTimezoneOffset();
  const local = new Date((timestamp - zoneMinutes * 60) * 1000);
  inputById(id).value = Number.isNaN(local.getTime()) ? "" : local.toISOString().slice(0, 19);
}
