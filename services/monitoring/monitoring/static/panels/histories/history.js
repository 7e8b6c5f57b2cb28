// The history of one person, read page by page from the API.
import { request } from "../../page/request.js";
import { API } from "../../page/shell.js";
import { firstAfter } from "../../rules/histories/first_after.js";

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
  /** @type {Detection[]} */
  const detections = [];
  let next = "";
  for (let page = 0; page < MAX_PAGES && (page === 0 || next); page += 1) {
    if (!proceed(detections.length)) return null;
    const answer = await readPage(id, { from, to, limit: PAGE_SIZE, ...(next && { cursor: next }) });
    detections.push(...answer.data);
    next = answer.next ?? "";
  }
  return { detections, truncated: Boolean(next) };
}

/**
 * The last detection before a range, and the first after it.
 * @param {string} id
 * @param {{ from: number, to: number }} range unix seconds
 * @returns {Promise<{ before?: Detection, after?: Detection }>}
 */
export async function readAround(id, { from, to }) {
  const before = readPage(id, { to: from - 1, limit: 1 });
  const after = firstAfter((query) => readPage(id, { limit: PAGE_SIZE, ...query }), to);
  const [page, first] = await Promise.all([before, after]);
  return { before: page.data[0], after: first };
}

/**
 * @param {string} id
 * @param {Record<string, string | number>} query
 * @returns {Promise<HistoryAnswer>}
 */
async function readPage(id, query) {
  const wanted = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  /** @type {HistoryAnswer | null} */
  const answer = await request(`${API}/staff/${encodeURIComponent(id)}/detections?${wanted}`);
  if (!Array.isArray(answer?.data)) throw new Error("Waymark cannot read this now.");
  return answer;
}
