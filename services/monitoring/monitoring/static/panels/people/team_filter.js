// The choice of a team, where the office has named any.
import { changeAddress, parameter } from "../../page/address.js";
import { el, keyed, selectById } from "../../page/dom.js";
import { onlyTeam } from "../../page/shell.js";

/** @param {string[]} teams */
export function drawTeams(teams) {
  const wanted = parameter("team");
  keyed(
    selectById("team"),
    ["", ...(wanted && !teams.includes(wanted) ? [...teams, wanted] : teams)],
    (name) => name,
    (name) => el("option", { value: name }, name || "All teams"),
    () => {},
  );
  selectById("team").hidden = Boolean(onlyTeam) || (!teams.length && !wanted);
  selectById("team").value = wanted;
}

/** @param {() => void} changed called when another team is chosen */
export function offerTeams(changed) {
  const field = selectById("team");
  field.addEventListener("change", () => {
    changeAddress({ team: field.value });
    changed();
  });
}
