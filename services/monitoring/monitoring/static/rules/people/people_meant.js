// Whom somebody means who types a name or an id. Pure.
/** @import { Names } from "./names.js" */
import { plain } from "./names.js";
import { staffIdOf } from "./people_search.js";

/**
 * The ids of several, with spaces or commas between them.
 * @param {string} text
 */
export const staffIdsOf = (text) =>
  text
    .replace(/(^|[\s,])staff\s+(?=[^\s,])/gi, "$1")
    .split(/[\s,]+/)
    .filter(Boolean);

/**
 * Those whose names have words that begin like all of a text's.
 * @param {string} text
 * @param {Names} names
 */
function withNamesLike(text, names) {
  const parts = plain(text).split(" ");
  return names.all.filter(({ name }) => {
    const words = plain(name).split(" ");
    return parts.every((part) => words.some((word) => word.startsWith(part)));
  });
}

/**
 * The ids of those whom somebody may mean, who types a name, a part of one, an id, or what a list
 * writes. A text that nobody is known by is an id that is not known yet.
 * @param {string} text
 * @param {Names} names
 * @param {ReadonlySet<string>} heard the ids of everybody ever heard
 * @returns {string[]}
 */
export function idsMeant(text, names, heard) {
  const id = staffIdOf(text);
  const beside = /\((\S+)\)$/.exec(text.trim())?.[1] ?? "";
  if (names.of(beside) && plain(names.called(beside)) === plain(text)) return [beside];
  const exact = names.namesakes(text).map((person) => String(person.staff_id));
  if (names.of(id) || heard.has(id)) exact.unshift(id);
  if (exact.length || /^\d*$/.test(id)) return [...new Set(exact.length ? exact : [id])];
  const like = withNamesLike(text, names).map((person) => String(person.staff_id));
  return like.length ? like.sort(names.compare) : [id];
}

/**
 * The same of several, with commas between them, or where they are ids, with spaces.
 * @param {string} text
 * @param {Names} names
 * @param {ReadonlySet<string>} heard
 * @returns {{ text: string, ids: string[] }[]} of each what was typed, and whom it may mean
 */
export function severalMeant(text, names, heard) {
  const isName = names.namesakes(text).length > 0; // which may have a comma
  return (isName ? [text] : text.split(",")).flatMap((part) => {
    const meant = idsMeant(part, names, heard);
    const isKnown = meant.some((id) => names.of(id) || heard.has(id));
    const texts = isKnown ? [part.trim()] : staffIdsOf(part);
    return texts.map((typed) => ({ text: typed, ids: idsMeant(typed, names, heard) }));
  });
}
