// Access: the audit, newest first; older entries are loaded on demand.
import { $, buttonById, el, keyed, setText } from "../../page/dom.js";
import { names } from "../../page/people.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { updateTime } from "../../page/time_element.js";
import { didText, whoText, withNewest } from "../../rules/audit/audit_entries.js";
import { drawProblems, errorTexts } from "../dialog.js";

export const AUDIT = `${API}/audit?limit=50`;

/** @type {AuditEntry[]} */
let shown = [];
/** @type {string | null} */
let next = null; // the id before which older entries are

/**
 * @param {AuditPage} newest
 * @param {(id: string) => string | undefined} labelOf
 */
export function drawAudit(newest, labelOf) {
  const all = withNewest(shown, newest);
  // Whatever was loaded is not there any more: its end is the page's.
  if (all.length === newest.data.length) next = newest.next;
  draw(all, labelOf);
  buttonById("older").onclick = () => loadOlder(labelOf);
}

/** @param {(id: string) => string | undefined} labelOf */
async function loadOlder(labelOf) {
  const button = buttonById("older");
  button.disabled = true;
  const last = shown.at(-1);
  try {
    /** @type {AuditPage} */
    const page = await request(`${AUDIT}&before=${next}`);
    // A read of the newest page may have dropped what this continues.
    if (last === shown.at(-1)) {
      next = page.next;
      draw([...shown, ...page.data], labelOf);
    }
    drawProblems($("older-problems"), []);
  } catch (error) {
    drawProblems($("older-problems"), errorTexts(error));
  } finally {
    button.disabled = false;
  }
}

/**
 * @param {AuditEntry[]} all
 * @param {(id: string) => string | undefined} labelOf
 */
function draw(all, labelOf) {
  shown = all;
  $("audit").hidden = all.length === 0;
  $("no-audit").hidden = all.length > 0;
  buttonById("older").hidden = next === null;
  keyed(
    $("audit"),
    all,
    (entry) => entry.id,
    () => el("li", {}, el("p", {}, el("strong"), el("span")), el("p", { class: "quiet" }, el("time"), el("span"))),
    (row, entry) => {
      const [[who, did], [time, from]] = [...row.children].map(({ children }) => children);
      setText(who, whoText(entry));
      setText(did, ` ${didText(entry, labelOf, names)}`);
      updateTime(time, entry.at);
      setText(from, entry.address && ` from ${entry.address}`);
    },
  );
}
