// What people are called: by the name that the office gave them, else by their id. Pure.
import { compare } from "../words.js";

/**
 * As a search compares texts: without capitals, accents and blanks that do not count.
 * @param {string} text
 */
export const plain = (text) =>
  text.normalize("NFD").replace(/\p{M}/gu, "").trim().replace(/\s+/g, " ").toLowerCase();

/**
 * As much of a name as there is room for: all of it, else the first part and the others' initials,
 * else the first part, cut at its end.
 * @param {string} name
 * @param {number} length
 */
export function shortName(name, length) {
  const [first, ...others] = name.split(/\s+/);
  const initials = others.map((part) => [...part][0]).join("");
  const fits = [name, `${first} ${initials}`.trim(), first].find((text) => [...text].length <= length);
  return fits ?? `${[...first].slice(0, length - 1).join("")}…`;
}

export class Names {
  /** @type {Map<string, NamedPerson>} */
  #byId;
  /** Those of each name, as a search compares it. @type {Map<string, NamedPerson[]>} */
  #byName = new Map();

  /** @param {NamedPerson[]} people */
  constructor(people) {
    this.#byId = new Map(people.map((person) => [String(person.staff_id), person]));
    for (const person of people) {
      const name = plain(person.name);
      const namesakes = this.#byName.get(name);
      if (namesakes) namesakes.push(person);
      else this.#byName.set(name, [person]);
    }
    /** All that there are, by name. */
    this.teams = [...new Set(people.map(({ team }) => team).filter(Boolean))].sort(compare);
  }

  get all() {
    return [...this.#byId.values()];
  }

  /** @param {string} id */
  of(id) {
    return this.#byId.get(id);
  }

  /**
   * Those who have this very name.
   * @param {string} name
   */
  namesakes(name) {
    return this.#byName.get(plain(name)) ?? [];
  }

  /**
   * "Jane Tan", with her id where another has her name; "Staff 7" where nobody has a name.
   * @param {string} id
   */
  called(id) {
    const person = this.of(id);
    if (!person) return `Staff ${id}`;
    return this.namesakes(person.name).length > 1 ? `${person.name} (${id})` : person.name;
  }

  /**
   * The same within a sentence.
   * @param {string} id
   */
  mention(id) {
    return this.of(id) ? this.called(id) : `staff ${id}`;
  }

  /**
   * Several within a sentence, those with names first: "Jane Tan, staff 7, 8 and 2 more".
   * @param {(string | number)[]} ids
   * @param {number} more how many there are besides
   */
  mentionAll(ids, more) {
    const all = ids.map(String);
    const named = all.filter((id) => this.of(id)).map((id) => this.called(id));
    const others = all.filter((id) => !this.of(id)).join(", ");
    const text = [...named, ...(others && [`staff ${others}`])].join(", ");
    return more > 0 ? `${text} and ${more} more` : text;
  }

  /**
   * The id beside a name; "" where what they are called has it.
   * @param {string} id
   */
  idBeside(id) {
    const person = this.of(id);
    return person && this.called(id) === person.name ? id : "";
  }

  /**
   * By name, and then those without one by id.
   * @param {string} id
   * @param {string} other
   */
  compare = (id, other) => {
    const [name, otherName] = [this.of(id)?.name, this.of(other)?.name];
    if (name === undefined || otherName === undefined)
      return Number(name === undefined) - Number(otherName === undefined) || compare(id, other);
    return compare(name, otherName) || compare(id, other);
  };
}
