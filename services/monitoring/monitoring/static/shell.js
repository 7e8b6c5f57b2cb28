// What every screen has: the banner, the time of the last good read, "/" for the search box.
import { $, setAttribute, setText } from "./dom.js";
import { banner, clock } from "./words.js";

export const API = document.body.dataset.api;
// Where downloads come from: on the service's own port there is no gateway in front.
export const DOWNLOADS = `${document.body.dataset.public}/api/v1`;
export const behindGateway = "behindGateway" in document.body.dataset;

// Tells how the screen's data are; the first of the sources that fails speaks for all.
export function tell(...sources) {
  const failing = sources.find((source) => source.failure);
  const text = failing ? banner(failing) : "";
  const box = $("banner");
  box.hidden = !text;
  setText(box, text);
  document.body.classList.toggle("blind", Boolean(failing));
  const main = failing ?? sources[0];
  const pulse = $("pulse");
  setAttribute(pulse, "data-state", failing ? failing.failure : main.data ? "closed" : "loading");
  setAttribute(
    document.body,
    "data-loaded",
    sources.every((source) => source.data),
  );
  if (main.takenAt)
    setText($("updated"), `${failing ? "As of" : "Updated"} ${clock(main.takenAt)}`);
  else if (failing) setText($("updated"), "Nothing read yet");
}

document.body.dataset.started = "true"; // boot.js waits for it

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea, [contenteditable], dialog");
  const search = document.querySelector("[data-search]");
  if (event.key === "/" && !typing && search && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});
