// The team whose people a screen shows. It stands in the address.
import { parameter } from "./address.js";
import { $, setText } from "./dom.js";
import { names, namesState } from "./people.js";
import { onlyTeam } from "./shell.js";

/**
 * The visitor's only team, else the address's, where there is such a one; "": everybody; null: it is not known yet. It says so
 * where there is none, or nobody can tell.
 */
export function shownTeam() {
  if (onlyTeam) return onlyTeam;
  const wanted = parameter("team");
  const isThere = names.teams.includes(wanted);
  const why = {
    reading: "",
    unread: `Who is of the team ${wanted} cannot be told now: everybody is shown.`,
    read: isThere ? "" : `There is no team ${wanted}: everybody is shown.`,
  }[namesState];
  $("no-team").hidden = !wanted || !why;
  setText($("no-team"), wanted ? why : "");
  document.body.dataset.shownTeam = isThere ? wanted : ""; // for paper
  if (wanted && namesState === "reading") return null;
  return isThere ? wanted : "";
}

/** @param {string} team */
export const whoseText = (team) => team && ` of the team ${team}`;

/**
 * Tells whether somebody is of a team, "" of which everybody is.
 * @param {string} team
 * @returns {(id: string | number) => boolean}
 */
export const isOf = (team) => (id) => !team || team === onlyTeam || names.of(String(id))?.team === team;
