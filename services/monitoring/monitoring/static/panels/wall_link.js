// The dialog in which an admin makes a link for a wall screen: a token to read with, shown once.
import { $, buttonById, el, inputById, keyed, selectById, setText } from "../page/dom.js";
import { request } from "../page/request.js";
import { clock, isUnknown, levelTitle } from "../rules/words.js";
import { drawProblems, errorTexts, openDialog } from "./dialog.js";

/**
 * @typedef {object} Token as the API answers a new one
 * @property {string} id
 * @property {string} secret
 * @property {number | null} expires_at unix seconds
 */

/**
 * Lets the button open the dialog; the template has both for admins alone.
 * @param {() => string[]} levels those to choose from
 */
export function offerWallLink(levels) {
  const button = document.getElementById("wall");
  if (!(button instanceof HTMLButtonElement)) return;
  const dialog = $("wall-dialog", HTMLDialogElement);
  button.addEventListener("click", () => {
    show({ made: false });
    drawProblems($("wall-errors"), []);
    drawLevels(levels().filter((level) => !isUnknown(level)));
    openDialog(dialog, button);
  });
  dialog.addEventListener("close", () => (inputById("wall-url").value = "")); // shown only once
  for (const id of ["wall-cancel", "wall-close"])
    buttonById(id).addEventListener("click", () => dialog.close());
  selectById("wall-unit").addEventListener("change", drawCount);
  buttonById("wall-copy").addEventListener("click", copy);
  $("wall-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    make();
  });
}

/** @param {{ made: boolean }} state */
function show({ made }) {
  $("wall-form").hidden = made;
  $("wall-made").hidden = !made;
}

/** @param {string[]} levels */
function drawLevels(levels) {
  keyed(
    selectById("wall-level"),
    ["", ...levels],
    (level) => level,
    (level) => el("option", { value: level }, level ? `${levelTitle(level)} alone` : "All levels"),
    () => {},
  );
}

/** Until it is revoked: no number is asked for. */
function drawCount() {
  inputById("wall-count").disabled = !selectById("wall-unit").value;
}

async function make() {
  const send = buttonById("wall-make"),
    unit = selectById("wall-unit").value;
  const body = JSON.stringify({
    label: inputById("wall-label").value,
    role: "read",
    level: selectById("wall-level").value || null,
    ...(unit && { [`expires_in_${unit}`]: Number(inputById("wall-count").value) }),
  });
  send.disabled = true;
  try {
    const headers = { "Content-Type": "application/json" };
    drawMade(await request("/api/v1/tokens", { method: "POST", body, headers }));
  } catch (error) {
    drawProblems($("wall-errors"), errorTexts(error));
  } finally {
    send.disabled = false;
  }
}

/** @param {Token} token */
function drawMade({ id, secret, expires_at: end }) {
  show({ made: true });
  setText($("wall-copied"), "");
  setText($("wall-until"), `It is valid until ${end ? clock(end) : "it is revoked"}.`);
  setText($("wall-revoke"), `./scripts/token revoke ${id}`);
  const field = inputById("wall-url");
  field.value = `${location.origin}/monitoring/login#token=${secret}`;
  field.select();
}

async function copy() {
  const field = inputById("wall-url");
  field.select();
  // Browsers have the clipboard only where TLS protects the page.
  const copied = navigator.clipboard
    ? await navigator.clipboard.writeText(field.value).then(
        () => true,
        () => false,
      )
    : document.execCommand("copy");
  setText($("wall-copied"), copied ? "Copied." : "Copy it with the keyboard: it is selected.");
}
