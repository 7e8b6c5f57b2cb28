// The dialog in which a token is made; its secret is shown once.
import { $, inputById, selectById } from "../../page/dom.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { openForm } from "../form_dialog.js";
import { showSecret } from "./secret_dialog.js";

const MAY = /** @type {Record<string, string>} */ ({
  ingest: "post detections",
  read: "see everything",
  admin: "do everything",
});

/**
 * @param {object} options
 * @param {HTMLElement} options.opener
 * @param {(text: string) => unknown} options.changed called with what was done
 */
export function openTokenForm({ opener, changed }) {
  $("token-form", HTMLFormElement).reset();
  openForm("token", { opener, send: make, done });

  /** @param {NewToken} made */
  function done({ label, role, secret }) {
    const title = `The token “${label}”`;
    const text = `Copy it now: it is shown only here, and nobody can show it again. Whoever has it may ${MAY[role]}.`;
    const name = "To send with each request, after “Authorization: Bearer ”";
    showSecret({ title, text, name, secret }, opener);
    changed(`Made the token “${label}”.`);
  }
}

/** @returns {Promise<NewToken>} */
function make() {
  const days = selectById("days").value;
  const token = {
    label: inputById("label").value.trim(),
    role: selectById("token-role").value,
    ...(days && { expires_in_days: Number(days) }),
  };
  const headers = { "Content-Type": "application/json" };
  return request(`${API}/tokens`, { method: "POST", body: JSON.stringify(token), headers });
}
