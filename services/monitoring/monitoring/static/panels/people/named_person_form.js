// The dialog in which somebody is named, changed or removed.
import { $, buttonById, el, inputById, setText } from "../../page/dom.js";
import { answerTo, request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { openForm, runForm } from "../form_dialog.js";

// Between two questions whether somebody is forgotten.
const PAUSE_MS = 2000;

/**
 * Opens it with the entry as it is now: the list may be half a minute old, and what somebody else
 * changes from now on is not written over.
 * @param {NamedPerson | null} listed null: somebody new
 * @param {object} options
 * @param {string} [options.id] of somebody new who was heard
 * @param {import("../../rules/people/names.js").Names} options.names of all whom the office named
 * @param {HTMLElement} options.opener
 * @param {(text: string) => unknown} options.changed called with what was done
 */
export async function openNamedPersonForm(listed, { id = "", names, opener, changed }) {
  const fixed = listed ? String(listed.staff_id) : id;
  const current = listed && (await answerTo(addressOf(fixed)).catch(() => null));
  const person = /** @type {NamedPerson | null} */ (current?.body ?? listed);
  const tag = current?.tag ?? "";
  const title = person ? `Edit ${names.called(fixed)}` : fixed ? `Name staff ${fixed}` : "Add a person";
  setText($("person-title"), title);
  inputById("staff-id").value = fixed;
  inputById("staff-id").readOnly = Boolean(fixed);
  inputById("name").value = person?.name ?? "";
  inputById("person-team").value = person?.team ?? "";
  inputById("person-note").value = person?.note ?? "";
  inputById("on-duty").checked = person?.on_duty ?? true;
  $("teams").replaceChildren(...names.teams.map((team) => el("option", { value: team })));
  const removing = buttonById("remove");
  removing.hidden = !person;
  removing.onclick = () => {
    if (!person || !confirm(`Remove ${person.name}? Their detections stay, as those of staff ${fixed}.`)) return;
    const remove = () => request(addressOf(fixed), { method: "DELETE" });
    runForm("person", remove, () => changed(`Removed ${person.name}.`));
  };
  const forgetting = buttonById("forget");
  forgetting.hidden = !fixed;
  forgetting.onclick = () => {
    const all = "All that is kept of them is deleted for good, every detection as well";
    if (!confirm(`Forget ${names.mention(fixed)}? ${all}. It takes some ten seconds.`)) return;
    const said = (/** @type {number} */ count) => `Forgot staff ${fixed}: ${count} detections are deleted.`;
    runForm("person", () => forget(fixed), (count) => changed(said(count)));
  };
  openForm("person", {
    opener,
    send: () => save(fixed, tag, !listed),
    done: (saved) => changed(`Saved ${saved.name}, staff ${saved.staff_id}.`),
  });
  inputById(fixed ? "name" : "staff-id").focus();
}

/**
 * @param {string} fixed the id, "" where it is typed
 * @param {string} tag of the entry that is changed, "" of none that is known
 * @param {boolean} isNew nobody has a name for them
 * @returns {Promise<NamedPerson>}
 */
function save(fixed, tag, isNew) {
  const id = fixed || inputById("staff-id").value.trim();
  const body = JSON.stringify({
    name: inputById("name").value,
    team: inputById("person-team").value,
    note: inputById("person-note").value,
    on_duty: inputById("on-duty").checked,
  });
  // Names are read beside what is seen, and may be old: the service knows who has one.
  const headers = {
    "Content-Type": "application/json",
    ...(tag && { "If-Match": tag }),
    ...(isNew && { "If-None-Match": "*" }),
  };
  return request(addressOf(id), { method: "PUT", body, headers });
}

/**
 * Forgets somebody: what is being stored at the beginning is looked for until the last answer.
 * @param {string} id
 * @returns {Promise<number>} how many detections were deleted
 */
async function forget(id) {
  const headers = { "Content-Type": "application/json" };
  let deleted = 0;
  for (let goOn = false; ; goOn = true) {
    const body = JSON.stringify({ staff_id: id, go_on: goOn });
    const answer = await request(`${API}/people/forgotten`, { method: "POST", body, headers });
    deleted += answer.deleted;
    if (answer.remaining === undefined) return deleted;
    if (!answer.remaining) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** @param {string} id */
const addressOf = (id) => `${API}/people/${encodeURIComponent(id)}`;
