// What each printed sheet says of itself: what it shows, of when, who printed it, and what is missing.
import { parameter } from "./address.js";
import { el } from "./dom.js";

const sheet = new CSSStyleSheet();
const written = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
/**
 * In the viewer's zone, as evidence has it.
 * @param {number} seconds unix seconds
 */
export const dateAndTime = (seconds) => written.format(seconds * 1000);

/**
 * Fills the head of the paper when it is printed, by a button or by the browser's menu.
 * @param {() => { takenAt: number, now: number }} times unix seconds of what is shown, and of now
 */
export function offerPaper(times) {
  const href = new URL("../print.css", import.meta.url).href;
  document.head.append(el("link", { rel: "stylesheet", media: "print", href }));
  document.adoptedStyleSheets.push(sheet);
  addEventListener("beforeprint", () => draw(times()));
}

/** @param {{ takenAt: number, now: number }} times */
function draw({ takenAt, now }) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const reader = textOf(".who a") || textOf(".who span") || "somebody who had not logged in";
  const what = `Waymark: ${textOf("dialog[open] h2") || textOf("h1")}`;
  const when = takenAt ? `As of ${dateAndTime(takenAt)} (${zone})` : `Nothing was read (${zone})`;
  const by = `Printed ${dateAndTime(now)} by ${reader}`;
  const lacks = missing().join(" ") || "Nothing is missing that Waymark knows of.";
  const paper = document.getElementById("paper");
  paper?.replaceChildren(...[what, `${when}. ${by}.`, lacks].map((text) => el("p", {}, text)));
  // Browsers that know the margins of a page have it on each sheet, the others on the first.
  sheet.replaceSync(`@page { margin: 20mm 12mm; font-size: 9pt;
    @top-left { content: ${quoted(what)}; }
    @top-right { content: ${quoted(when)}; }
    @bottom-left { content: ${quoted(by)} "\\A " ${quoted(lacks)}; width: 80%; text-align: left; white-space: pre-wrap; }
    @bottom-right { content: "Sheet " counter(page) " of " counter(pages); } }`);
}

/** What is not on the paper, or may be wrong on it. */
function missing() {
  const query = parameter("q").trim();
  const level = parameter("level");
  const warnings = ["#banner", "#failed span", "#missing", "#no-level", "#no-team"].map(textOf);
  if (level) warnings.push(`Level ${level} alone.`);
  const { team, shownTeam = team } = document.body.dataset;
  if (shownTeam) warnings.push(`Of the people, the team ${shownTeam} alone.`);
  if (textOf("#older")) warnings.push("Older entries of the audit are missing.");
  if (query) warnings.push(`Only what matches “${query}” is listed.`);
  return warnings.filter(Boolean);
}

/**
 * What an element says, "" while it is hidden.
 * @param {string} selector
 */
function textOf(selector) {
  const element = document.querySelector(selector);
  const isShown = element instanceof HTMLElement && !element.closest("[hidden]");
  return isShown ? (element.textContent ?? "").replaceAll(/\s+/g, " ").trim() : "";
}

/** @param {string} text as CSS writes it */
const quoted = (text) => `"${text.replaceAll(/["\\\n]/g, (letter) => `\\${letter.codePointAt(0)?.toString(16)} `)}"`;
