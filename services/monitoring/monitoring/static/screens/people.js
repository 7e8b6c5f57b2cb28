// People: who is who? The names that the office gave, and the ids that were heard and have none.
import { adopt, changeAddress, parameter } from "../page/address.js";
import { $, buttonById, el, inputById, keyed, setAttribute, setText } from "../page/dom.js";
import { API, behindGateway, isReader, showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { offerClosing } from "../panels/form_dialog.js";
import { openImport } from "../panels/import_dialog.js";
import { openNamedPersonForm } from "../panels/people/named_person_form.js";
import { drawTeams, offerTeams } from "../panels/people/team_filter.js";
import { changesOf, directoryText, findNamed } from "../rules/people/named_people.js";
import { Names } from "../rules/people/names.js";
import { duration } from "../rules/words.js";

// An ingest service learns of an edit at another one within 2 s, and the gateway takes turns.
const REREAD_MS = 2500;
const MAX_ROWS = 500; // more of them no browser draws at once without a pause

/** Straight from the API, so that an edit shows at once. @type {Source<{ data: NamedPerson[] }>} */
const people = new Source(`${API}/people`, 30, draw);
/** @type {Source<UnnamedAnswer>} */
const unnamed = new Source(`${API}/people/unnamed`, 15, draw);
const search = inputById("search");

/** Of the answer that was read last. @type {{ data: NamedPerson[] | undefined, names: Names }} */
let known = { data: undefined, names: new Names([]) };

function names() {
  const data = people.data?.data;
  if (data !== known.data) known = { data, names: new Names(data ?? []) };
  return known.names;
}

/**
 * After an edit: says what was done, and reads again.
 * @param {string} text
 */
async function changed(text) {
  setText($("done"), text);
  $("done").hidden = false;
  const read = () => Promise.all([people.refresh(), unnamed.refresh()]);
  setTimeout(read, REREAD_MS);
  await read();
  // What was clicked may be gone with its row.
  if (document.activeElement === document.body) $("done").focus();
}

function draw() {
  showFreshness(people, unnamed);
  $("skeleton").hidden = Boolean(people.data || people.failure);
  drawUnnamed();
  if (!people.data) return;
  const team = parameter("team");
  drawTeams(names().teams);
  document.body.dataset.shownTeam = team; // for paper
  const all = people.data.data;
  const shown = findNamed(all, parameter("q"), team);
  setText($("summary"), directoryText(all, shown, team));
  $("people").hidden = all.length === 0;
  const body = $("people", HTMLTableElement).tBodies[0];
  keyed(body, shown.slice(0, MAX_ROWS), (person) => String(person.staff_id), createRow, updateRow);
  const more = `Only the first ${MAX_ROWS} are listed: search, or export all of them.`;
  const none = all.length ? "Nobody matches." : "Nobody has a name yet: add a person, or import a CSV file.";
  $("none").hidden = shown.length > 0 && shown.length <= MAX_ROWS;
  setText($("none"), shown.length ? more : none);
}

/** @param {NamedPerson} person */
function createRow({ staff_id: id }) {
  const button = el("button", { type: "button", class: "edit", disabled: !behindGateway }, "Edit");
  button.addEventListener("click", () => {
    const person = names().of(String(id));
    if (person) openNamedPersonForm(person, { names: names(), opener: button, changed });
  });
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("span"), el("span", { class: "by quiet" })),
    el("td", { "data-name": "Staff" }),
    el("td"),
    el("td", { class: "quiet" }),
    el("td", { class: "actions" }, isReader ? null : button),
  );
}

/**
 * @param {Element} row
 * @param {NamedPerson} person
 */
function updateRow(row, person) {
  const [name, id, team, note, actions] = row.children;
  setText(name.children[0], person.name);
  setText(name.children[1], person.on_duty ? "" : "off duty");
  setText(id, String(person.staff_id));
  setText(team, person.team);
  setText(note, person.note);
  const [button] = actions.children; // a reader has none
  if (button) setAttribute(button, "aria-label", `Edit ${person.name}, staff ${person.staff_id}`);
}

function drawUnnamed() {
  const { data = [], truncated = false } = unnamed.data ?? {};
  $("inbox").hidden = !unnamed.data;
  $("inbox-empty").hidden = data.length > 0;
  setText($("inbox-count"), `${data.length}${truncated ? " or more" : ""}`);
  keyed($("unnamed"), data, (person) => String(person.staff_id), createUnnamed, (row, person) => {
    const ago = duration(Math.max(0, unnamed.now() - person.last_heard));
    updateTime(row.children[1], person.last_heard, `last heard ${ago} ago`);
  });
}

/** @param {UnnamedPerson} person */
function createUnnamed({ staff_id: id }) {
  const label = `Name staff ${id}`;
  const attributes = { type: "button", class: "edit", disabled: !behindGateway, "aria-label": label };
  const button = el("button", attributes, "Name");
  button.addEventListener("click", () =>
    openNamedPersonForm(null, { id: String(id), names: names(), opener: button, changed }),
  );
  const time = el("time", { class: "quiet" });
  return el("li", {}, el("span", {}, `Staff ${id}`), time, isReader ? null : button);
}

adopt(search, "q");
search.addEventListener("input", () => {
  changeAddress({ q: search.value }, { replace: true });
  draw();
});
offerTeams(draw);
if (!isReader) {
  const add = buttonById("add"),
    importing = buttonById("import");
  add.addEventListener("click", () =>
    openNamedPersonForm(null, { names: names(), opener: add, changed }),
  );
  importing.addEventListener("click", () =>
    openImport("/people/import", { changesOf, opener: importing, changed }),
  );
  for (const button of [add, importing]) button.disabled = !behindGateway;
  offerClosing();
}
window.addEventListener("popstate", () => {
  search.value = parameter("q");
  draw();
});
people.start();
unnamed.start();
