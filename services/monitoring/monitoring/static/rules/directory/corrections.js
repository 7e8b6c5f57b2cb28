// What a correction of the past would change, in words. Pure.

const MAX_NAMES = 4;

/**
 * @param {{ detections: number, people: number, staff: { staff_id: string | number }[] }} found
 */
export function changesText({ detections, people, staff }) {
  if (!detections) return "No past detection has another place: none will change.";
  const named = staff.slice(0, MAX_NAMES).map((person) => person.staff_id);
  const more = people > named.length ? ` and ${people - named.length} more` : "";
  const [count, will] = detections === 1 ? ["1 past detection", "gets"] : [`${detections.toLocaleString()} past detections`, "get"];
  return `Save changes the past: ${count} of staff ${named.join(", ")}${more} ${will} this place.`;
}
