// More people than are told at once (`Source.more`, once it was so). No part of the first paint.
/** @import { Source } from "./source.js" */
import { $, el } from "./dom.js";

const database = [...$("missing").childNodes];
const only = [
  el("strong", {}, "Only the first people are shown,"),
  " as there are more than a page can show: choose a team.",
];

/**
 * Has a team's people read alone, and says why some are missing.
 * @param {Source<StaffAnswer>} staff
 * @param {string} team "" for everybody
 */
export function readTeam(staff, team) {
  $("missing").replaceChildren(...(team ? database : only));
  const url = `/monitoring/api/staff${team && `?team=${encodeURIComponent(team)}`}`;
  if (staff.url === url) return;
  staff.url = url;
  staff.refresh();
}
