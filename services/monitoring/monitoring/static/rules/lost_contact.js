// Who was heard in this shift, and is not heard any more. Pure.
/** @import { Person } from "./people_model.js" */
import { clock } from "./words.js";

export const SHIFT_SECONDS = 12 * 3600; // who was heard before that has gone home

/**
 * Those who were not heard for so many minutes and, as far as anybody said, have not gone home: the
 * longest lost first, and nobody moves under a pointer when somebody sees to them.
 * @param {Person[]} all
 * @param {number} minutes
 */
export const lostContact = (all, minutes) =>
  all
    .filter((one) => one.silence > minutes * 60 && one.age <= SHIFT_SECONDS)
    .filter((one) => one.lost_contact?.state !== "gone_home")
    .sort((one, other) => one.heardAt - other.heardAt || one.order - other.order);

/** @param {Person} one */
export const isSeenTo = (one) => Boolean(one.lost_contact);

/** @param {Person} one */
export const seenToText = ({ lost_contact: said }) =>
  said ? `${said.by} saw to it, ${clock(said.at, { seconds: false })}` : "";
