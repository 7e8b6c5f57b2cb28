// How large text is in this browser. The layouts get it as an argument: they know no DOM.
/** @import { Scale } from "./marker_layout.js" */
import { sizes } from "./marker_layout.js";

const canvas = document.createElement("canvas").getContext("2d");

/** The font size of the document in CSS px; it grows on a wall screen. */
export const rootFontSize = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/**
 * The scale of a drawing.
 * @param {number} room how much room there is, 1 where it is just enough
 * @returns {Scale}
 */
export const scaleFor = (room) => ({ ...sizes(rootFontSize(), room), textWidth });

/** @type {Scale["textWidth"]} */
function textWidth(text, px, weight = 400) {
  if (!canvas) return text.length * px * 0.6;
  canvas.font = `${weight} ${px}px system-ui, sans-serif`;
  return canvas.measureText(text).width;
}
