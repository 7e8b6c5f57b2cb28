// What the dialogs of the directory share: they open, and they tell what is wrong.
import { el } from "../page/dom.js";
import { RequestFailed } from "../page/request.js";

const MAX_PROBLEMS = 50;

/**
 * Opens a dialog; when it closes, the focus goes back to what opened it.
 * @param {HTMLDialogElement} dialog
 * @param {HTMLElement} opener
 */
export function openDialog(dialog, opener) {
  dialog.addEventListener("close", () => opener.focus(), { once: true });
  dialog.showModal();
}

/**
 * The problems that the API names, one text each.
 * @param {Problem | null} body
 */
export const problemTexts = (body) =>
  (body?.errors ?? []).map(({ line, field, reason }) => {
    const where = `${line ? `line ${line}: ` : ""}${field ? `${field} ` : ""}`;
    return where + reason;
  });

/**
 * @param {unknown} error
 * @returns {string[]}
 */
export function errorTexts(error) {
  const texts = error instanceof RequestFailed ? problemTexts(error.problem) : [];
  if (texts.length) return texts;
  return [error instanceof Error ? error.message : String(error)];
}

/**
 * @param {HTMLElement} list
 * @param {string[]} texts
 */
export function drawProblems(list, texts) {
  list.hidden = texts.length === 0;
  list.replaceChildren(...texts.slice(0, MAX_PROBLEMS).map((text) => el("li", {}, text)));
  const hidden = texts.length - MAX_PROBLEMS;
  if (hidden > 0) list.append(el("li", {}, `and ${hidden} more`));
}
