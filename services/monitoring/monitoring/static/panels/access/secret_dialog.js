// The dialog that shows a secret once: of a token or a link, or the password of a new account.
import { copy } from "../../page/clipboard.js";
import { $, buttonById, inputById, setText } from "../../page/dom.js";
import { openDialog } from "../dialog.js";

/**
 * @param {object} shown
 * @param {string} shown.title
 * @param {string} shown.text
 * @param {string} shown.name of the field
 * @param {string} shown.secret
 * @param {(Node | string)[]} [shown.more] what else there is to say of it
 * @param {HTMLElement} opener
 */
export function showSecret({ title, text, name, secret, more = [] }, opener) {
  const dialog = $("secret-dialog", HTMLDialogElement),
    field = inputById("secret");
  let isCopied = false;
  setText($("secret-title"), title);
  setText($("secret-text"), text);
  setText($("secret-name"), name);
  $("secret-more").replaceChildren(...more);
  $("secret-more").hidden = !more.length;
  setText($("copied"), "");
  field.value = secret;
  buttonById("copy").onclick = async () => {
    isCopied = await copy(field);
    setText($("copied"), isCopied ? "Copied." : "It is selected: copy it with Ctrl+C.");
  };
  // Escape alone loses nothing that cannot be shown again.
  const keep = (/** @type {Event} */ event) => {
    if (isCopied) return;
    event.preventDefault();
    setText($("copied"), "Not copied yet. “Done” closes this for good.");
  };
  dialog.oncancel = keep;
  // Browsers let `cancel` stop one Escape, and not the next: so the key is stopped too.
  dialog.onkeydown = (event) => {
    if (event.key === "Escape") keep(event);
  };
  dialog.addEventListener("close", () => (field.value = ""), { once: true });
  openDialog(dialog, opener);
  field.select();
}
