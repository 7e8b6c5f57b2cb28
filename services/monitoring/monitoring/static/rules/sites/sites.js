// Who is where at several sites, from what each of them told last. Pure.
/** @import { Person } from "../people/people_model.js" */
import { lostContact } from "../people/lost_contact.js";
import { Names, plain } from "../people/names.js";
import { directorySpots, everyone, isOffDuty } from "../people/people_model.js";
import { clock, peopleText, placeText } from "../words.js";

/**
 * A site, and who was heard there.
 * @typedef {object} Site
 * @property {string} name
 * @property {string} url
 * @property {string} problem why it cannot be read now, "" while it can
 * @property {number} failingSince unix seconds
 * @property {number} takenAt when it told what is known of it; 0: it never did
 * @property {boolean} complete whether that is everybody
 * @property {Found[]} here those who were heard lately, by name
 * @property {Found[]} lost the longest lost first
 *
 * Somebody at a site.
 * @typedef {Person & { siteName: string, siteUrl: string, isLost: boolean, isPast: boolean }} Found
 * `isPast`: the site cannot be read now
 */

// Of the places of other sites nothing is known but what their people say.
const NO_PLACES = directorySpots([]);
const OLD_SECONDS = 30; // each is asked every few seconds while somebody looks

/**
 * @param {string | null} text
 * @returns {any} the answer; null where the text is none, or no list
 */
function listIn(text) {
  try {
    const answer = JSON.parse(text ?? "null");
    return Array.isArray(answer?.data) ? answer : null;
  } catch {
    return null;
  }
}

const MOST_SECONDS = 8e12; // of a date

/** @param {unknown} value */
const isTime = (value) => typeof value === "number" && Math.abs(value) < MOST_SECONDS;
/** @param {unknown} value */
const isId = (value) => typeof value === "string" || Number.isSafeInteger(value);
/** @param {unknown} value */
const isText = (value) => value === null || value === undefined || typeof value === "string";

/**
 * Whether an entry says who was heard when and where: no other is shown.
 * @param {any} entry
 * @returns {entry is StaffMember}
 */
const isMember = (entry) =>
  isId(entry?.staff_id) &&
  isTime(entry.timestamp) &&
  isTime(entry.age_seconds) &&
  isTime(entry.clock_skew_seconds ?? 0) &&
  typeof entry.mac === "string" &&
  isText(entry.location) &&
  (isText(entry.level) || typeof entry.level === "number");

/**
 * @param {any} entry
 * @returns {entry is NamedPerson}
 */
const isNamed = (entry) =>
  isId(entry?.staff_id) && typeof entry.name === "string" && isText(entry.team);

/**
 * The right entries of a list, one for each id.
 * @template T
 * @param {unknown[]} entries
 * @param {(entry: any) => entry is T} isRight
 * @returns {T[]}
 */
const rightOnes = (entries, isRight) => [
  ...new Map(
    entries.filter(isRight).map((entry) => [String(/** @type {any} */ (entry).staff_id), entry]),
  ).values(),
];

/**
 * @param {SiteReport} report
 * @param {number} now unix seconds, by the clock of the service that asked the site
 * @param {number} lostMinutes
 * @returns {Site}
 */
export function siteOf(report, now, lostMinutes) {
  const answer = listIn(report.staff);
  const data = rightOnes(answer?.data ?? [], isMember);
  const people = rightOnes(listIn(report.people)?.data ?? [], isNamed);
  const readAt = answer && report.read_at ? report.read_at : 0;
  const isWrong = report.staff !== null && !answer;
  const isOld = readAt > 0 && now - readAt > OLD_SECONDS;
  const problem =
    report.problem ||
    (isWrong ? "it told something else than who is there" : isOld ? "it has not answered yet" : "");
  // The site's own clock counts its ages: it may differ from ours.
  const takenAt = report.taken_at ?? 0;
  const source = {
    data: { ...answer, as_of: isTime(answer?.as_of) ? answer.as_of : takenAt, data },
    failure: problem,
    takenAt,
    now: () => now + takenAt - readAt,
  };
  const all = everyone(source, NO_PLACES, "", new Names(people));
  const lost = new Set(lostContact(all, lostMinutes));
  /** @param {Person} person */
  const found = (person) => ({
    ...person,
    siteName: report.name,
    siteUrl: report.url,
    isLost: lost.has(person),
    isPast: Boolean(problem),
  });
  return {
    name: report.name,
    url: report.url,
    problem,
    failingSince: report.failing_since ?? report.read_at ?? now,
    takenAt: readAt,
    complete:
      Boolean(answer) &&
      (answer.complete ?? true) &&
      !report.has_more &&
      data.length === answer.data.length,
    here: all.filter((person) => !person.gone).map(found),
    lost: [...lost].map(found),
  };
}

/**
 * What a site tells, in words.
 * @param {Site} site
 */
export function siteText({ problem, failingSince, takenAt, complete }) {
  const missing = complete ? "" : ": some people may be missing";
  if (!problem) return takenAt ? `as of ${clock(takenAt)}${missing}` : "It was not asked yet";
  const then = takenAt ? `; this is of ${clock(takenAt)}${missing}` : "";
  return `Cannot be read since ${clock(failingSince)}: ${problem}${then}`;
}

/**
 * All of it in a sentence.
 * @param {Site[]} sites
 */
export function sitesText(sites) {
  const here = sites.reduce((sum, site) => sum + site.here.length, 0);
  const lost = sites.reduce((sum, site) => sum + site.lost.length, 0);
  const failing = sites.filter(({ problem }) => problem).map(({ name }) => name);
  const more = sites.some(({ complete }) => !complete) ? " or more" : "";
  const where = `at ${sites.length === 1 ? "1 site" : `${sites.length} sites`}`;
  const texts = [`${peopleText(here)}${more} here ${where}`];
  if (lost) texts.push(`${lost} lost contact`);
  if (failing.length) texts.push(`${failing.join(", ")} cannot be read now`);
  return texts.join("; ");
}

/**
 * Whom a search finds at all sites ("": everybody): who has lost contact first, then by site and name.
 * @param {Site[]} sites
 * @param {string} search
 */
export function findPeople(sites, search) {
  const wanted = plain(search);
  const here = sites.flatMap((site) => site.here).filter(({ isLost }) => !isLost);
  const lost = sites
    .flatMap((site) => site.lost)
    .sort((person, other) => other.silence - person.silence);
  return [...lost, ...here].filter((person) => !wanted || plain(textOf(person)).includes(wanted));
}

/** @param {Found} person */
const textOf = (person) =>
  `${person.called} staff ${person.id} ${person.named?.team ?? ""} ${placeText(person)} ${person.siteName}`;

/** @param {Found} person */
export const remarkOf = (person) =>
  [placeText(person), person.isLost && "lost contact", isOffDuty(person) && "off duty"]
    .filter(Boolean)
    .join("; ");
