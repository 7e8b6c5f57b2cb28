// The dialog that imports a CSV file: checked first (`dry_run`), then imported as a whole.
import { $, buttonById, el, inputById, setText } from "../../page/dom.js";
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { macText, placeText } from "../../rules/words.js";
import { drawProblems, errorTexts, openDialog, problemTexts } from "../dialog.js";

/**
 * @param {object} options
 * @param {HTMLElement} options.opener
 * @param {(text: string) => unknown} options.changed called with what was done
 */
export function openImport({ opener, changed }) {
  const dialog = $("importer", HTMLDialogElement),
    file = inputById("file"),
    run = buttonById("run-import");
  let text = "";
  file.value = "";
  run.disabled = true;
  setText($("preview"), "");
  drawProblems($("import-errors"), []);
  drawMoves({});
  file.onchange = async () => {
    const chosen = file.files?.[0];
    run.disabled = true;
    drawMoves({});
    if (!chosen) return;
    setText($("preview"), "Checking…");
    try {
      text = await chosen.text();
      const body = await send(text, "?dry_run=1");
      const problems = problemTexts(body);
      drawProblems($("import-errors"), problems);
      const refused = "Nothing is imported before these lines are right:";
      setText($("preview"), problems.length ? refused : summary(body, " would be"));
      if (!problems.length) {
        drawMoves(body);
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
      const body = await send(text, "");
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
 * @param {string} text
 * @param {string} query
 * @returns {Promise<ImportAnswer>}
 */
const send = (text, query) =>
  request(`${API}/beacons/import${query}`, {
    method: "POST",
    body: text,
    headers: { "Content-Type": "text/csv" },
  });

/**
 * @param {ImportAnswer} body
 * @param {string} verb
 */
function summary(body, verb) {
  /** @param {"added" | "changed" | "unchanged"} name */
  const count = (name) => body[name] ?? 0;
  return `${count("added")}${verb} added, ${count("changed")}${verb} changed, ${count("unchanged")} unchanged.`;
}

/**
 * Names the beacons that another place is given to.
 * @param {ImportAnswer} body
 */
function drawMoves({ moves = [], changed = 0 }) {
  const lines = moves.map(({ before, after }) =>
    el(
      "li",
      {},
      el("span", { class: "mac" }, macText(after.mac)),
      el("span", {}, `${placeOf(before)} → ${placeOf(after)}`),
    ),
  );
  const hidden = changed - moves.length;
  $("moves").hidden = moves.length === 0;
  $("moves").replaceChildren(...lines, ...(hidden > 0 ? [el("li", {}, `and ${hidden} more`)] : []));
}

/** @param {Beacon} beacon */
const placeOf = (beacon) =>
  placeText(beacon) + (beacon.x === null ? "" : ` (${beacon.x}, ${beacon.y})`);
