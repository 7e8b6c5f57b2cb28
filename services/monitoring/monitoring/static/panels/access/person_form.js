// The dialog in which somebody's account is made, changed or removed.
import { $, buttonById, inputById, selectById, setText } from "../../page/dom.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { openForm, runForm } from "../form_dialog.js";
import { showSecret } from "./secret_dialog.js";

const PASSWORD_BYTES = 15; // 120 random bits, 20 characters

/**
 * @param {Person | null} person null: somebody new
 * @param {object} options
 * @param {string} options.own the name of who does it
 * @param {HTMLElement} options.opener
 * @param {(text: string) => unknown} options.changed called with what was done
 */
export function openPersonForm(person, { own, opener, changed }) {
  const isNew = !person,
    isOwn = person?.name === own;
  setText($("person-title"), isNew ? "Add a person" : `Edit ${person.name}`);
  inputById("name").value = person?.name ?? "";
  inputById("name").readOnly = !isNew;
  selectById("person-role").value = person?.role ?? "read";
  inputById("new-password").checked = isNew;
  $("new-password-line").hidden = isNew || isOwn || Boolean(person?.provider);
  $("own-note").hidden = !isOwn;
  $("new-note").hidden = !isNew;
  buttonById("remove").hidden = isNew;
  const typed = () => inputById("name").value.trim().toLowerCase();

  buttonById("remove").onclick = () => {
    if (!person) return;
    const who = isOwn ? "your own account? You are logged out" : `${person.name}? They are logged out`;
    if (!confirm(`Remove ${who} within 10 s.`)) return;
    const remove = () => request(addressOf(person.name), { method: "DELETE" });
    runForm("person", remove, () => changed(`Removed ${person.name}.`));
  };
  openForm("person", {
    opener,
    send: async () => {
      const name = typed();
      const password = inputById("new-password").checked ? randomPassword() : "";
      const body = JSON.stringify({
        role: selectById("person-role").value,
        ...(password && { password }),
      });
      // The list that is shown may be old, or not read yet: the service knows who is there.
      const headers = {
        "Content-Type": "application/json",
        ...(isNew && { "If-None-Match": "*" }),
      };
      await request(addressOf(name), { method: "PUT", body, headers });
      return { name, password };
    },
    done: ({ name, password }) => {
      if (password) tell(name, password, opener);
      changed(`Saved ${name}.`);
    },
  });
}

/**
 * @param {string} name
 * @param {string} secret
 * @param {HTMLElement} opener
 */
function tell(name, secret, opener) {
  const title = `The password of ${name}`;
  const text = `Copy it now, and give it to ${name}: it is shown only here, and nobody can show it again.`;
  const note = "To log in with; they may change it under their name";
  showSecret({ title, text, name: note, secret }, opener);
}

/** @param {string} name */
const addressOf = (name) => `${API}/accounts/${encodeURIComponent(name)}`;

function randomPassword() {
  const bytes = crypto.getRandomValues(new Uint8Array(PASSWORD_BYTES));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
}
