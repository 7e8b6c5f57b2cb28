// Who was heard in this shift, and is not heard any more. Pure.
/** @import { Person } from "./people_model.js" */
import { SHIFT_SECONDS } from "../histories/day_ranges.js";
import { clock } from "../words.js";
import { isOffDuty } from "./people_model.js";

/**
 * Those on duty who were not heard for so many minutes and, as far as anybody said, have not gone home:
 * the longest lost first, and nobody moves under a pointer when somebody sees to them.
 * @param {Person[]} all
 * @param {number} minutes
 */
export const lostContact = (all, minutes) =>
  all
    .filter((person) => person.silence > minutes * 60 && person.age <= SHIFT_SECONDS)
    .filter((person) => person.lost_contact?.state !== "gone_home" && !isOffDuty(person))
    .sort((person, other) => person.heardAt - other.heardAt || person.order - other.order);

/** @param {Person} person */
export const isSeenTo = (person) => Boolean(person.lost_contact);

/** @param {Person} one */
export const seenToText = ({ lost_contact: said }) =>
  said ? `${said.by} saw to it, ${clock(said.at, { seconds: false })}` : "";
