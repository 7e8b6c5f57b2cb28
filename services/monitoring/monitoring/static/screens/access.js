// Access: who may do what? The people, the tokens, and what they did.
import { $, buttonById, setText } from "../page/dom.js";
import { readNames } from "../page/people.js";
import { request } from "../page/request.js";
import { API, showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { drawPeople } from "../panels/access/people_table.js";
import { openPersonForm } from "../panels/access/person_form.js";
import { openTokenForm } from "../panels/access/token_form.js";
import { drawTokens } from "../panels/access/tokens_table.js";
import { AUDIT, drawAudit } from "../panels/audit/audit_list.js";
import { offerClosing } from "../panels/form_dialog.js";
import { isValid, summaryText } from "../rules/access/access_words.js";

// A read that was under way during a change may not have it.
const REREAD_MS = 2500;

/** @type {Source<{ data: Person[] }>} */
const people = new Source(`${API}/accounts`, 30, draw);
/** @type {Source<{ data: Token[] }>} */
const tokens = new Source(`${API}/tokens`, 30, draw);
/** @type {Source<AuditPage>} */
const audit = new Source(AUDIT, 15, draw);
const sources = { people, tokens, audit };
const own = document.body.dataset.visitor ?? "";

const labelOf = (/** @type {string} */ id) =>
  tokens.data?.data.find((token) => token.id === id)?.label;

/**
 * After a change: says what was done, or was not, and reads again.
 * @param {string} text
 * @param {{ failed?: boolean }} [options]
 */
async function changed(text, { failed = false } = {}) {
  setText($("done"), text);
  $("done").classList.toggle("failed", failed);
  $("done").hidden = false;
  const read = () => Promise.all(Object.values(sources).map((source) => source.refresh()));
  setTimeout(read, REREAD_MS);
  await read();
  // What was clicked may be gone with its row.
  if (document.activeElement === document.body) $("done").focus();
}

function draw() {
  showFreshness(people, tokens, audit);
  const refused = Object.values(sources).find((source) => source.refused);
  if (refused) return end(refused.refused);
  for (const [name, source] of Object.entries(sources))
    $(`${name}-skeleton`).hidden = Boolean(source.data) || Boolean(source.failure);
  const now = tokens.now();
  if (people.data) drawPeople(people.data.data, own, editPerson);
  if (tokens.data) drawTokens(tokens.data.data, now, revoke);
  if (audit.data) drawAudit(audit.data, labelOf);
  if (!people.data || !tokens.data) return;
  const valid = tokens.data.data.filter((token) => isValid(token, now)).length;
  setText($("summary"), summaryText(people.data.data.length, valid));
}

/**
 * Who is no admin any more sees nothing of it: the page says why, and asks no longer.
 * @param {string} why
 */
function end(why) {
  for (const source of Object.values(sources)) source.stop();
  $("banner").hidden = false;
  setText(
    $("banner-says"),
    `This is not for you any more: ${why}. Load the page again once that has changed.`,
  );
  $("main").hidden = true;
}

/**
 * @param {string} name "" for somebody new
 * @param {HTMLElement} opener
 */
function editPerson(name, opener) {
  const person = people.data?.data.find((account) => account.name === name) ?? null;
  openPersonForm(person, { own, opener, changed });
}

/**
 * @param {Token} token
 * @param {HTMLElement} opener
 */
async function revoke({ id, label }, opener) {
  if (!confirm(`Revoke “${label}”? Within 30 s it is refused everywhere, for good.`)) return;
  opener.setAttribute("disabled", "");
  try {
    await request(`${API}/tokens/${id}`, { method: "DELETE" });
    await changed(`Revoked “${label}”. Within 30 s it is refused everywhere.`);
  } catch (error) {
    opener.removeAttribute("disabled");
    const why = error instanceof Error ? error.message : error;
    await changed(`“${label}” was not revoked: ${why}`, { failed: true });
  }
}

const add = buttonById("add-person"),
  make = buttonById("make-token");
add.addEventListener("click", () => editPerson("", add));
make.addEventListener("click", () => openTokenForm({ opener: make, changed }));
offerClosing();
for (const source of Object.values(sources)) source.start();
readNames(draw);
