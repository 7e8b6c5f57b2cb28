// What a correction of the past would change, in words. Pure.
/** @import { Names } from "../people/names.js" */

const MAX_NAMES = 4;

/**
 * @param {{ detections: number, people: number, staff: { staff_id: string | number }[] }} found
 * @param {Names} names
 */
export function changesText({ detections, people, staff }, names) {
  if (!detections) return "No past detection has another place: none will change.";
  const ids = staff.slice(0, MAX_NAMES).map((person) => person.staff_id);
  const whose = names.mentionAll(ids, people - ids.length);
  const [count, will] = detections === 1 ? ["1 past detection", "gets"] : [`${detections.toLocaleString()} past detections`, "get"];
  return `Save changes the past: ${count} of ${whose} ${will} this place.`;
}
