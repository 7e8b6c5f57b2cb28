// Whom a search finds. Pure.
/** @import { Person, Spot } from "./people_model.js" */
import { placeText, spotText } from "../words.js";
import { plain } from "./names.js";

/**
 * Whether a search is the whole name of a spot.
 * @param {string} search
 * @param {Spot} spot
 */
export const isNameOf = (search, spot) => plain(search) === plain(spot.location);

/**
 * Tells of somebody whether a search finds them: by a part of their name, id, team, place or beacon.
 * The whole name of a place finds those who are there, and whoever has that name: "Spot 1" is not
 * "Spot 12".
 * @param {string} search
 * @param {Spot[]} spots
 * @returns {(one: Person) => boolean}
 */
export function finder(search, spots) {
  const wanted = plain(search);
  if (spots.some((spot) => isNameOf(search, spot)))
    return (person) =>
      [spotText(person), person.id, nameOf(person), teamOf(person)].some((text) => plain(text) === wanted);
  return (person) => {
    const who = `${nameOf(person)} staff ${person.id} ${teamOf(person)}`;
    const ids = [person.mac, person.spot?.mac, ...(person.spot?.aliases ?? [])].join(" ");
    return plain(`${who} ${placeText(person)} ${ids}`).includes(wanted);
  };
}

/** @param {Person} person */
const nameOf = ({ named }) => named?.name ?? "";

/** @param {Person} person */
const teamOf = ({ named }) => named?.team ?? "";

/**
 * The id of whom somebody typed, who may write "Staff 7" as every list does: no id has a space.
 * @param {string} text
 */
export const staffIdOf = (text) => text.trim().replace(/^staff\s+/i, "");

/**
 * The one whom a search means most of those whom it finds: who has that very name, else the first.
 * @param {Person[]} people
 * @param {string} search
 */
export function bestMatch(people, search) {
  const wanted = plain(staffIdOf(search));
  return people.find((person) => plain(person.id) === wanted || plain(nameOf(person)) === wanted) ?? people[0];
}
