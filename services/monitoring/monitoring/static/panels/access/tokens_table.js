// Access: the tables of the tokens, those that are valid and those that have ended.
import { $, el, keyed, setAttribute, setText } from "../../page/dom.js";
import { updateTime } from "../../page/time_element.js";
import { isValid, minute, roleText, validityText } from "../../rules/access/access_words.js";
import { duration } from "../../rules/words.js";

/**
 * @param {Token[]} tokens
 * @param {number} now
 * @param {(token: Token, opener: HTMLElement) => void} revoke
 */
export function drawTokens(tokens, now, revoke) {
  const valid = tokens.filter((token) => isValid(token, now));
  const ended = tokens.filter((token) => !isValid(token, now));
  setText($("tokens-count"), String(valid.length));
  setText($("past-count"), String(ended.length));
  $("tokens").hidden = valid.length === 0;
  $("no-tokens").hidden = valid.length > 0;
  $("past").hidden = ended.length === 0;
  for (const [id, rows] of /** @type {const} */ ([["tokens", valid], ["past-tokens", ended]]))
    keyed(
      $(id, HTMLTableElement).tBodies[0],
      rows,
      (token) => token.id,
      (token) => createRow(token, rows === valid ? revoke : null),
      (row, token) => updateRow(row, token, now),
    );
}

/**
 * @param {Token} token
 * @param {((token: Token, opener: HTMLElement) => void) | null} revoke
 */
function createRow(token, revoke) {
  const row = el(
    "tr",
    {},
    el("th", { scope: "row" }, el("span"), el("span", { class: "mac quiet" })),
    el("td"),
    el("td", { "data-name": "Made" }, el("time")),
    el("td", { "data-name": "Last used" }, el("time")),
    el("td", { "data-name": revoke && "Valid" }, el("time")),
  );
  if (revoke) {
    /** @type {HTMLButtonElement} */
    const button = el(
      "button",
      {
        type: "button",
        class: "edit danger",
        "aria-label": `Revoke ${token.label}`,
        onclick: () => revoke(token, button),
      },
      "Revoke",
    );
    row.append(el("td", { class: "actions" }, button));
  }
  return row;
}

/**
 * @param {Element} row
 * @param {Token} token
 * @param {number} now
 */
function updateRow(row, token, now) {
  const [label, role, made, used, validity] = row.children;
  setText(label.children[0], token.label);
  setText(label.children[1], token.id);
  setText(role, roleText(token));
  updateTime(made.children[0], token.created_at, minute(token.created_at));
  const { last_used_at: last } = token;
  if (last === null) setText(used.children[0], "never");
  else updateTime(used.children[0], last, `${duration(now - last)} ago`);
  const text = validityText(token, now);
  const ends = token.revoked_at ?? token.expires_at;
  if (ends === null) setText(validity.children[0], text);
  else updateTime(validity.children[0], ends, text);
  setAttribute(row, "data-id", token.id);
}
