// What every screen has: the banner, the time of the last good read, "/" for the search box.
/** @import { Source } from "./source.js" */
import { banner, bannerAge, clock, isComplete } from "../rules/words.js";
import { parameter } from "./address.js";
import { $, setAttribute, setText } from "./dom.js";
import { offerLogOut } from "./log_out.js";

const settings = document.body.dataset; // by the template

/** Where the API is: at the gateway, or on the service's own port what that passes on. */
export const API = settings.api ?? "/api/v1";
/** Where downloads come from: on the service's own port there is no gateway in front. */
export const DOWNLOADS = `${settings.public ?? ""}/api/v1`;
export const behindGateway = "behindGateway" in settings;
/** Whether this visitor may look, and change nothing. */
export const isReader = "reader" in settings;
/** The only level that this visitor may see; "": all of them. */
export const onlyLevel = settings.level ?? "";
/** The same of a team. */
export const onlyTeam = settings.team ?? "";
/** Whether histories and places are not for this visitor. */
export const isLimited = Boolean(onlyLevel || onlyTeam);
/** After so many minutes without a visit, a location is a gap. */
export const officeGapMinutes = settings.gap ?? "";

/** After so many minutes in which they were not heard, somebody has lost contact. */
export const officeLostMinutes = settings.lost ?? "";

/**
 * The visitor's only level, else the address's, where there is such a one; "": all of them. It says so
 * where the address names one that is not there.
 * @param {string[]} levels
 * @param {unknown} isComplete whether these are all levels that there are
 */
export function shownLevel(levels, isComplete) {
  if (onlyLevel) return onlyLevel;
  const wanted = parameter("level");
  const level = levels.includes(wanted) ? wanted : "";
  const isMissing = Boolean(wanted && !level && isComplete);
  $("no-level").hidden = !isMissing;
  setText($("no-level"), isMissing ? `There is no level ${wanted}: all levels are shown.` : "");
  return level;
}

/** Of when what is shown is: of the source that decides. @type {Source<any> | null} */
let shown = null;

/**
 * Shows how current the screen's data are; the first source that fails decides.
 * @param {Source<any>[]} sources
 */
export function showFreshness(...sources) {
  const failing = sources.find((source) => source.failure);
  $("banner").hidden = !failing;
  setText($("banner-says"), failing ? banner(failing) : "");
  setText($("banner-age"), failing ? bannerAge(failing) : "");
  $("ended").hidden = failing?.failure !== "ended";
  $("log-in", HTMLAnchorElement).href = `/monitoring/login?next=${encodeURIComponent(location.pathname + location.search)}`;
  $("missing").hidden = isComplete(...sources.map((source) => source.data));
  // What was known stays, all of it grey, and says of when it is.
  document.body.classList.toggle("blind", Boolean(failing));
  const main = failing ?? sources[0];
  shown = main;
  const summary = document.getElementById("summary"); // Replay has none
  const then = failing && main.takenAt ? `At ${clock(main.takenAt)}: ` : null;
  if (summary) setAttribute(summary, "data-then", then);
  const state = failing ? failing.failure : main.data ? "closed" : "loading";
  setAttribute($("pulse"), "data-state", state);
  const isLoaded = sources.every((source) => source.data);
  setAttribute(document.body, "data-loaded", isLoaded);
  if (main.takenAt)
    setText($("updated"), `${failing ? "As of" : "Updated"} ${clock(main.takenAt)}`);
  else if (failing) setText($("updated"), "Nothing read yet");
}

settings.started = "true"; // boot.js waits for it
offerLogOut();
// What paper needs comes after what is seen.
addEventListener("load", () =>
  import("./paper.js").then(
    ({ offerPaper }) =>
      offerPaper(() => ({ takenAt: shown?.takenAt ?? 0, now: shown?.now() ?? Date.now() / 1000 })),
    (error) => console.warn("Paper will lack its head:", error),
  ),
);

document.addEventListener("keydown", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const isTyping = target?.closest("input, select, textarea, [contenteditable], dialog");
  const search = document.querySelector("[data-search]");
  const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (isSlash && !isTyping && search instanceof HTMLInputElement) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});
