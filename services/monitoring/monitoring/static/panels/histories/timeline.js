// The time line of Replay: a ribbon of visits, and the slider below it.
/** @import { Range } from "../../rules/histories/day_ranges.js" */
/** @import { Visit } from "../../rules/histories/visits.js" */
import { $, inputById, setAttribute, setText, svg } from "../../page/dom.js";
import { clock, isUnknown, placeText } from "../../rules/words.js";

const RIBBON_WIDTH = 1000; // as in the template
export const ribbonBox = { viewBox: `0 0 ${RIBBON_WIDTH} 10`, preserveAspectRatio: "none" };

/**
 * One block a visit, in turns light and dark; nothing where nobody knows.
 * @param {Visit[]} visits
 * @param {Range} range
 */
export function ribbonBlocks(visits, range) {
  const scale = RIBBON_WIDTH / (range.to - range.from);
  return visits.map((visit, index) =>
    svg(
      "rect",
      {
        x: (visit.from - range.from) * scale,
        width: Math.max(0.6, (visit.to - visit.from) * scale),
        y: 0,
        height: 10,
        class: `block ${isUnknown(visit.level) ? "unknown" : index % 2 ? "odd" : "even"}`,
      },
      svg("title", {}, `${clock(visit.from)} – ${clock(visit.to)}: ${placeText(visit)}`),
    ),
  );
}

/**
 * @param {Visit[]} visits
 * @param {Range} range
 */
export function drawRibbon(visits, range) {
  $("ribbon", SVGElement).replaceChildren(...ribbonBlocks(visits, range));
  setText($("range-from"), clock(range.from));
  setText($("range-to"), clock(range.to));
}

/**
 * @param {number} at unix seconds
 * @param {Range} range
 * @param {string} place what a screen reader says of that time
 */
export function drawScrubber(at, range, place) {
  const scrubber = inputById("scrubber");
  scrubber.min = String(range.from);
  scrubber.max = String(range.to);
  scrubber.value = String(at);
  setAttribute(scrubber, "aria-valuetext", `${clock(at)}: ${place}`);
  $("needle").style.left = `${((at - range.from) / (range.to - range.from)) * 100}%`;
}
