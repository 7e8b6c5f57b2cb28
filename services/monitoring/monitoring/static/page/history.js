// The history of one person, read page by page from the API.
import { API } from "./shell.js";
import { request } from "./request.js";

const PAGE_SIZE = 1000; // detections in one answer of the API
const MAX_PAGES = 30; // 33 hours of one detection every 4 s

/**
 * @param {string} id
 * @param {{ from: number, to: number }} range unix seconds
 * @param {(count: number) => boolean} proceed called before each page with the number of detections
 *   so far; tells whether they are still wanted
 * @returns {Promise<{ detections: Detection[], truncated: boolean } | null>} the newest first; null
 *   when they were not wanted any more
 */
export async function readHistory(id, { from, to }, proceed) {
  const url = `${API}/staff/${encodeURIComponent(id)}/detections?from=${from}&to=${to}&limit=${PAGE_SIZE}`;
  /** @type {Detection[]} */
  const detections = [];
  let next = "";
  for (let page = 0; page < MAX_PAGES && (page === 0 || next); page += 1) {
    if (!proceed(detections.length)) return null;
    /** @type {HistoryAnswer | null} */
    const answer = await request(url + (next ? `&cursor=${encodeURIComponent(next)}` : ""));
    if (!Array.isArray(answer?.data)) throw new Error("Waymark cannot read this now.");
    detections.push(...answer.data);
    next = answer.next ?? "";
  }
  return { detections, truncated: Boolean(next) };
}
