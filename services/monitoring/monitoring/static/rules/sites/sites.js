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

/**
 * @param {SiteReport} report
 * @param {number} now unix seconds, by the clock of the service that asked the site
 * @param {number} lostMinutes
 * @returns {Site}
 */
export function siteOf(report, now, lostMinutes) {
  /** @type {StaffAnswer | null} */
  const staff = listIn(report.staff);
  const isWrong = report.staff !== null && !staff;
  const problem = report.problem || (isWrong ? "it told something else than who is there" : "");
  const readAt = staff && report.read_at ? report.read_at : 0;
  // The site's own clock counts its ages: it may differ from ours.
  const ahead = (report.taken_at ?? 0) - readAt;
  const source = {
    data: staff,
    failure: problem,
    takenAt: report.taken_at ?? 0,
    now: () => now + ahead,
  };
  const all = everyone(source, NO_PLACES, "", new Names(listIn(report.people)?.data ?? []));
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
    failingSince: report.failing_since ?? readAt,
    takenAt: readAt,
    complete: Boolean(staff) && (staff?.complete ?? true) && !report.has_more,
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
