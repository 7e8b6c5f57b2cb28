// Times on the page: in the viewer's zone, with the date and UTC on hover.
import { clock, utc } from "../rules/words.js";
import { setAttribute, setText } from "./dom.js";

/**
 * @template {Element} T
 * @param {T} node a <time>
 * @param {number} timestamp unix seconds
 * @param {string} [text] the clock, when it is left out
 * @returns {T}
 */
export function updateTime(node, timestamp, text) {
  const moment = new Date(timestamp * 1000);
  setAttribute(node, "datetime", moment.toISOString());
  setAttribute(node, "title", `${moment.toLocaleString()} · ${utc(timestamp)}`);
  setText(node, text ?? clock(timestamp));
  return node;
}
