// The dialog that imports a CSV file: checked first (`dry_run`), then imported as a whole.
import { $, buttonById, el, inputById, setText } from "../page/dom.js";
import { request } from "../page/request.js";
import { API } from "../page/shell.js";
import { drawProblems, errorTexts, openDialog, problemTexts } from "./dialog.js";

/**
 * What a file changes, one line for each, and how many more there are.
 * @typedef {{ lines: { key: string, text: string }[], more: number }} Changes
 */

/**
 * @param {string} path of the API
 * @param {object} options
 * @param {(answer: any) => Changes} options.changesOf
 * @param {HTMLElement} options.opener
 * @param {(text: string) => unknown} options.changed called with what was done
 */
export function openImport(path, { changesOf, opener, changed }) {
  const dialog = $("importer", HTMLDialogElement),
    file = inputById("file"),
    run = buttonById("run-import");
  let text = "";
  file.value = "";
  run.disabled = true;
  setText($("preview"), "");
  drawProblems($("import-errors"), []);
  drawChanges({ lines: [], more: 0 });
  file.onchange = async () => {
    const chosen = file.files?.[0];
    run.disabled = true;
    drawChanges({ lines: [], more: 0 });
    if (!chosen) return;
    setText($("preview"), "Checking…");
    try {
      text = await chosen.text();
      const body = await send(`${path}?dry_run=1`, text);
      const problems = problemTexts(body);
      drawProblems($("import-errors"), problems);
      const refused = "Nothing is imported before these lines are right:";
      setText($("preview"), problems.length ? refused : summary(body, " would be"));
      if (!problems.length) {
        drawChanges(changesOf(body));
        drawProblems($("import-errors"), body.warnings ?? []);
      }
      run.disabled = problems.length > 0;
    } catch (error) {
      drawProblems($("import-errors"), errorTexts(error));
      setText($("preview"), "This file cannot be imported:");
    }
  };
  run.onclick = async () => {
    run.disabled = true;
    try {
      const body = await send(path, text);
      dialog.close();
      await changed(`Imported ${file.files?.[0]?.name}: ${summary(body, "")}`);
    } catch (error) {
      drawProblems($("import-errors"), errorTexts(error));
      setText($("preview"), "This file was not imported:");
    }
  };
  buttonById("cancel-import").onclick = () => dialog.close();
  openDialog(dialog, opener);
}

/**
 * @param {string} path
 * @param {string} text
 * @returns {Promise<ImportAnswer>}
 */
const send = (path, text) =>
  request(API + path, { method: "POST", body: text, headers: { "Content-Type": "text/csv" } });

/**
 * @param {ImportAnswer} body
 * @param {string} verb
 */
function summary(body, verb) {
  /** @param {"added" | "changed" | "unchanged"} name */
  const count = (name) => body[name] ?? 0;
  return `${count("added")}${verb} added, ${count("changed")}${verb} changed, ${count("unchanged")} unchanged.`;
}

/** @param {Changes} changes */
function drawChanges({ lines, more }) {
  const rows = lines.map(({ key, text }) =>
    el("li", {}, el("span", { class: "mac" }, key), el("span", {}, text)),
  );
  $("moves").hidden = lines.length === 0;
  $("moves").replaceChildren(...rows, ...(more > 0 ? [el("li", {}, `and ${more} more`)] : []));
}
