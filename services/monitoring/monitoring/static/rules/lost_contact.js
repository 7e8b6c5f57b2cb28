// Who was heard in this shift, and is not heard any more. Pure.
/** @import { Person } from "./people_model.js" */

export const SHIFT_SECONDS = 12 * 3600; // who was heard before that has gone home

/**
 * When those were heard last of whom a viewer knows that they are lost.
 * @typedef {Record<string, number>} Dismissed
 */

/**
 * Those who were not heard for so many minutes, the longest lost first. Whoever was dismissed comes
 * back once they were heard and lost again.
 * @param {Person[]} all
 * @param {Dismissed} dismissed
 * @param {number} minutes
 */
export const lostContact = (all, dismissed, minutes) =>
  all
    .filter((one) => one.silence > minutes * 60 && one.age <= SHIFT_SECONDS)
    .filter((one) => !(dismissed[one.id] >= Math.floor(one.heardAt)))
    .sort((one, other) => one.heardAt - other.heardAt || one.order - other.order);

/**
 * What is dismissed when these are as well. Of the others goes who was heard since: not who is only
 * missing, whose shard may be away.
 * @param {Person[]} people
 * @param {Dismissed} before
 * @param {Person[]} all
 * @returns {Dismissed}
 */
export function withDismissed(people, before, all) {
  const heard = new Map(all.map((one) => [one.id, Math.floor(one.heardAt)]));
  const oldest = Math.max(0, ...people.map((one) => one.heardAt)) - 2 * SHIFT_SECONDS;
  const kept = Object.entries(before).filter(([id, at]) => at > oldest && at >= (heard.get(id) ?? 0));
  return Object.fromEntries([...kept, ...people.map((one) => [one.id, Math.ceil(one.heardAt)])]);
}
