// The first detection after a time, of an API that tells the newest first. Pure.

const FIRST_SECONDS = 900;
const GROWTH = 4;

/**
 * Asks for the newest; where there are more, looks through spans that grow while they are empty. Of
 * one that holds more than a page, it looks through the halves.
 * @param {(query: { from: number, to?: number, limit?: number }) => Promise<HistoryAnswer>} read one
 *   page of a range, in unix seconds, both ends in it
 * @param {number} time unix seconds
 * @returns {Promise<Detection | undefined>}
 */
export async function firstAfter(read, time) {
  let from = time + 1;
  const { data, next } = await read({ from, limit: 1 });
  if (!next) return data[0];
  const newest = data[0].timestamp;
  let isTooMuch = false;
  for (let seconds = FIRST_SECONDS; from <= newest; ) {
    const page = await read({ from, to: from + seconds - 1 });
    const isEmpty = !page.data.length;
    if (!isEmpty && (!page.next || seconds === 1)) return page.data.at(-1); // all of one second are
    isTooMuch ||= !isEmpty;
    if (isEmpty) from += seconds;
    seconds = isTooMuch ? Math.ceil(seconds / 2) : seconds * GROWTH;
  }
  return data[0]; // what was older is gone meanwhile
}
