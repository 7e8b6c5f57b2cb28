// Sites: who is where, at all of them? Each is a Waymark of its own, which the monitoring service asks.
/** @import { Found, Site } from "../rules/sites/sites.js" */
import { adopt, changeAddress, parameter } from "../page/address.js";
import { $, el, inputById, keyed, setAttribute, setText } from "../page/dom.js";
import { officeLostMinutes, showFreshness } from "../page/shell.js";
import { Source } from "../page/source.js";
import { updateTime } from "../page/time_element.js";
import { findPeople, remarkOf, siteOf, sitesText, siteText } from "../rules/sites/sites.js";
import { heardText, minutesOf } from "../rules/words.js";

const MAX_ROWS = 500; // more of them no browser draws at once without a pause

/** @type {Source<{ data: SiteReport[] }>} */
const reports = new Source("/monitoring/api/sites", 10, draw);
const search = inputById("search");

function draw() {
  showFreshness(reports);
  $("skeleton").hidden = Boolean(reports.data || reports.failure);
  if (!reports.data) return;
  const minutes = minutesOf(officeLostMinutes);
  const sites = reports.data.data.map((report) => siteOf(report, reports.now(), minutes));
  setText($("summary"), sitesText(sites));
  $("sites").hidden = false;
  const body = $("sites", HTMLTableElement).tBodies[0];
  keyed(body, sites, ({ name }) => name, createSite, updateSite);
  const found = findPeople(sites, parameter("q"));
  const shown = found.slice(0, MAX_ROWS);
  keyed($("people"), shown, ({ siteName, id }) => `${siteName}\n${id}`, createRow, updateRow);
  const more = `Only the first ${MAX_ROWS} are listed: search.`;
  const none = parameter("q").trim() ? `Nobody matches “${parameter("q").trim()}”.` : "Nobody was heard lately.";
  $("none").hidden = found.length > 0 && found.length <= MAX_ROWS;
  setText($("none"), found.length ? more : none);
}

/** @param {Site} site */
const createSite = ({ name, url }) =>
  el(
    "tr",
    {},
    el("th", { scope: "row" }, el("a", { href: `${url}/monitoring` }, name)),
    el("td", { class: "number", "data-name": "Here" }),
    el("td", { "data-name": "Lost contact" }),
    el("td"),
  );

/**
 * @param {Element} row
 * @param {Site} site
 */
function updateSite(row, site) {
  const [, here, lost, tells] = row.children;
  const isKnown = site.takenAt > 0;
  setText(here, isKnown ? String(site.here.length) : "–");
  setText(lost, isKnown ? String(site.lost.length) : "–");
  setAttribute(lost, "class", `number${site.lost.length ? " warn" : ""}`);
  setText(tells, siteText(site));
  setAttribute(tells, "class", site.problem ? "state" : "quiet");
  setAttribute(tells, "data-state", site.problem ? "ill" : null);
}

/** @param {Found} person */
const createRow = ({ id, siteUrl }) =>
  el(
    "li",
    {},
    el(
      "a",
      { class: "row", href: `${siteUrl}/monitoring?person=${encodeURIComponent(id)}` },
      el("span", { class: "mark", "aria-hidden": "true" }),
      el("span", { class: "who" }),
      el("span", { class: "where" }),
      el("span", { class: "floor-name" }),
      el("time", { class: "heard" }),
    ),
  );

/**
 * @param {Element} item
 * @param {Found} person
 */
function updateRow(item, person) {
  const [mark, who, where, site, heard] = item.children[0].children;
  setAttribute(mark, "class", `mark ${person.isLost ? "ghost" : person.fresh}`);
  setText(who, person.called);
  setText(where, remarkOf(person));
  setText(site, person.siteName);
  updateTime(heard, person.heardAt, heardText(person.heardAt, person.age, person.isPast));
}

adopt(search, "q");
search.addEventListener("input", () => {
  changeAddress({ q: search.value }, { replace: true });
  draw();
});
window.addEventListener("popstate", () => {
  search.value = parameter("q");
  draw();
});
reports.start();
