// The dialog that shows a secret once: of a token, or the password of a new account.
import { copy } from "../page/clipboard.js";
import { $, buttonById, inputById, setText } from "../page/dom.js";
import { openDialog } from "./dialog.js";

/**
 * @param {{ title: string, text: string, name: string, secret: string }} shown
 * @param {HTMLElement} opener
 */
export function showSecret({ title, text, name, secret }, opener) {
  const dialog = $("secret-dialog", HTMLDialogElement),
    field = inputById("secret");
  let isCopied = false;
  setText($("secret-title"), title);
  setText($("secret-text"), text);
  setText($("secret-name"), name);
  setText($("copied"), "");
  field.value = secret;
  buttonById("copy").onclick = async () => {
    isCopied = await copy(field);
    setText($("copied"), isCopied ? "Copied." : "It is selected: copy it with Ctrl+C.");
  };
  // Escape alone loses nothing that cannot be shown again.
  dialog.oncancel = (event) => {
    if (isCopied) return;
    event.preventDefault();
    setText($("copied"), "Not copied yet. “Done” closes this for good.");
  };
  dialog.addEventListener("close", () => (field.value = ""), { once: true });
  openDialog(dialog, opener);
  field.select();
}
