// What the screen People tells of those whom the office has named. Pure.
import { peopleText } from "../words.js";
import { plain } from "./names.js";

/**
 * Those of a team ("": of all) in whose name, id, team or note a search is found.
 * @param {NamedPerson[]} people
 * @param {string} search
 * @param {string} team
 */
export function findNamed(people, search, team) {
  const wanted = plain(search);
  return people.filter(
    (person) => (!team || person.team === team) && (!wanted || plain(textOf(person)).includes(wanted)),
  );
}

/** @param {NamedPerson} person */
const textOf = ({ staff_id: id, name, team, note }) => `${name} staff ${id} ${team} ${note}`;

/**
 * @param {NamedPerson[]} all
 * @param {NamedPerson[]} shown
 * @param {string} team
 */
export function directoryText(all, shown, team) {
  const off = shown.filter((person) => !person.on_duty).length;
  const whole = shown.length === all.length ? "" : `of ${all.length} `;
  const where = team ? `of the team ${team}` : "with a name";
  const count = whole ? `${shown.length} ${whole}people` : peopleText(all.length);
  return `${count} ${where}${off ? `, ${off} off duty` : ""}`;
}

/**
 * What a file changes of whom, as pairs of id and text, and how many more there are.
 * @param {PeopleImportAnswer} answer
 */
export function changesOf({ changes = [], changed = 0 }) {
  const lines = changes.map(({ before, after }) => ({
    key: `staff ${after.staff_id}`,
    text: `${entryText(before)} → ${entryText(after)}`,
  }));
  return { lines, more: changed - lines.length };
}

/** @param {NamedPerson} person */
const entryText = ({ name, team, note, on_duty: isOnDuty }) =>
  [name, team, note, isOnDuty ? "" : "off duty"].filter(Boolean).join(", ");
