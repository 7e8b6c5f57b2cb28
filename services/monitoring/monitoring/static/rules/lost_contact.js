// Who was heard in this shift, and is not heard any more. Pure.
/** @import { Person } from "./people_model.js" */

const SHIFT_SECONDS = 12 * 3600; // who was heard before that has gone home

/**
 * When those were heard last of whom a viewer knows that they are lost.
 * @typedef {Record<string, number>} Dismissed
 */

/**
 * Those who were not heard for 15 minutes, the newest first. Whoever was dismissed comes back once
 * they were heard and lost again.
 * @param {Person[]} all
 * @param {Dismissed} dismissed
 */
export const lostContact = (all, dismissed) =>
  all
    .filter((one) => one.gone && one.age <= SHIFT_SECONDS)
    .filter((one) => !(dismissed[one.id] >= Math.floor(one.heardAt)))
    .sort((one, other) => other.heardAt - one.heardAt || one.order - other.order);

/**
 * What is dismissed when these are as well; of the others, who is still lost.
 * @param {Person[]} people
 * @param {Dismissed} before
 * @param {Person[]} all
 * @returns {Dismissed}
 */
export function withDismissed(people, before, all) {
  const lost = new Set(all.filter((one) => one.gone).map((one) => one.id));
  const kept = Object.entries(before).filter(([id]) => lost.has(id));
  return Object.fromEntries([...kept, ...people.map((one) => [one.id, Math.ceil(one.heardAt)])]);
}
