// The dialog in which an admin makes a link for a wall screen: a token to read with, shown once.
import { $, el, inputById, keyed, selectById } from "../../page/dom.js";
import { names } from "../../page/people.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { clock, isUnknown, levelTitle } from "../../rules/words.js";
import { openForm } from "../form_dialog.js";
import { showSecret } from "./secret_dialog.js";

/**
 * Lets the button open the dialog; the template has both for admins alone.
 * @param {() => string[]} levels those to choose from
 */
export function offerWallLink(levels) {
  const opener = document.getElementById("wall");
  if (!opener) return;
  opener.removeAttribute("disabled");
  selectById("wall-unit").addEventListener("change", drawCount);
  opener.addEventListener("click", () => {
    drawLevels(levels().filter((level) => !isUnknown(level)));
    drawTeams();
    $("wall-form", HTMLFormElement).reset();
    drawCount();
    openForm("wall", { opener, send: make, done: (made) => showLink(made, opener) });
  });
}

/** @param {string[]} levels */
function drawLevels(levels) {
  keyed(
    selectById("wall-level"),
    ["", ...levels],
    (level) => level,
    (level) => el("option", { value: level }, level ? `${levelTitle(level)} alone` : "All levels"),
    () => {},
  );
}

/** Where there are any. */
function drawTeams() {
  const options = names.teams.map((team) => el("option", { value: team }, `The team ${team} alone`));
  selectById("wall-team").replaceChildren(el("option", { value: "" }, "Everybody"), ...options);
  $("wall-teams").hidden = !options.length;
}

/** Until it is revoked: no number is asked for. */
function drawCount() {
  inputById("wall-count").disabled = !selectById("wall-unit").value;
}

/** @returns {Promise<NewToken>} */
function make() {
  const unit = selectById("wall-unit").value,
    team = selectById("wall-team").value;
  const token = {
    label: inputById("wall-label").value,
    role: "read",
    level: selectById("wall-level").value || null,
    ...(team && { team }),
    ...(unit && { [`expires_in_${unit}`]: Number(inputById("wall-count").value) }),
  };
  const headers = { "Content-Type": "application/json" };
  return request(`${API}/tokens`, { method: "POST", body: JSON.stringify(token), headers });
}

/**
 * @param {NewToken} made
 * @param {HTMLElement} opener
 */
function showLink({ id, secret, level, expires_at: end }, opener) {
  const wall = `/monitoring?wall${level ? `&level=${encodeURIComponent(level)}` : ""}`;
  const shown = {
    title: "Open this on the wall screen",
    text: "Copy it now: it is shown only here, and nobody can show it again.",
    name: "The link",
    secret: `${location.origin}/monitoring/login?next=${encodeURIComponent(wall)}#token=${secret}`,
    more: [
      `It is valid until ${end ? clock(end) : "it is revoked"}. To revoke it: the screen Access, or `,
      el("code", {}, `./scripts/token revoke ${id}`),
    ],
  };
  showSecret(shown, opener);
}
