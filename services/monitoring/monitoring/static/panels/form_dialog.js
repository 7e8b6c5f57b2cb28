// A dialog with a form: it sends, it tells what is wrong, it closes when it is done.
import { $ } from "../page/dom.js";
import { drawProblems, errorTexts, openDialog } from "./dialog.js";

/**
 * @template T
 * @param {string} name of the dialog's parts: #name-dialog, #name-form, #name-problems
 * @param {object} options
 * @param {HTMLElement} options.opener
 * @param {() => Promise<T>} options.send
 * @param {(answer: T) => unknown} options.done
 */
export function openForm(name, { opener, send, done }) {
  const form = $(`${name}-form`, HTMLFormElement);
  form.onsubmit = (event) => {
    event.preventDefault();
    runForm(name, send, done);
  };
  drawProblems($(`${name}-problems`), []);
  openDialog($(`${name}-dialog`, HTMLDialogElement), opener);
}

/**
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} send
 * @param {(answer: T) => unknown} done
 */
export async function runForm(name, send, done) {
  const dialog = $(`${name}-dialog`, HTMLDialogElement);
  const buttons = dialog.querySelectorAll("button");
  const focused = document.activeElement;
  buttons.forEach((button) => (button.disabled = true));
  try {
    const answer = await send();
    dialog.close();
    done(answer);
  } catch (error) {
    drawProblems($(`${name}-problems`), errorTexts(error));
  } finally {
    buttons.forEach((button) => (button.disabled = false));
    if (dialog.open && focused instanceof HTMLElement) focused.focus(); // a disabled button loses it
  }
}

/** Lets the buttons for it close the dialogs of a screen. */
export function offerClosing() {
  for (const button of document.querySelectorAll("[data-close]"))
    button.addEventListener("click", () => button.closest("dialog")?.close());
}
