// The audit: which entries are shown, and what each says. Pure.
/** @import { Names } from "../people/names.js" */
import { minute, roleText } from "../access/access_words.js";
import { alsoText } from "../directory/beacon_ids.js";
import { macText } from "../words.js";

/**
 * What is shown once the newest page was read again: with what was loaded before, unless there
 * may be entries between the two that nobody read.
 * @param {AuditEntry[]} known newest first
 * @param {AuditPage} page
 * @returns {AuditEntry[]}
 */
export function withNewest(known, { data, next }) {
  const oldest = data.at(-1);
  if (!oldest || next === null) return data;
  const overlap = known.findIndex((entry) => entry.id === oldest.id);
  return overlap < 0 ? data : [...data, ...known.slice(overlap + 1)];
}

/** @param {AuditEntry} entry */
export function whoText({ who, kind }) {
  if (kind === "person") return who;
  if (kind === "token") return `The token “${who}”`;
  return kind === "command" ? "Somebody on the machine itself" : "Somebody";
}

/** @param {Details[string] | undefined} ids with blanks between */
const idsOf = (ids) => (ids ? String(ids).split(" ") : []);

/** Whom an entry tells of that told of somebody who was forgotten since. */
const FORGOTTEN = "forgotten";

/** @param {string} of */
const staffText = (of) => (of === FORGOTTEN ? "somebody who is forgotten" : `staff ${of}`);

/** @param {Details} details */
const placeOf = ({ level, location }) => `level ${level}, ${location}`;

/**
 * What each entry says after the name of who did it, by `what`.
 * @type {Record<string, (entry: AuditEntry, token: string, names: Names) => string>}
 */
const DID = {
  "log-in": () => "logged in",
  "log-in refused": ({ of, details: { why } }) => {
    if (why) return `could not log in${of && ` as ${of}`}: ${why}`;
    if (of === "a token") return "could not log in: that token is not valid";
    return of ? `could not log in as ${of}: wrong password` : "could not log in: nobody has that name";
  },
  "log-out": () => "logged out",
  "log-out everywhere": () => "logged out everywhere",
  "password change": () => "changed their password",
  "password change refused": () => "could not change their password: the old one was wrong",
  "account put": ({ of, details }) =>
    `gave ${of} the role ${details.role}${details.new_password ? " and a new password" : ""}`,
  "account removed": ({ of }) => `removed ${of} from the people`,
  "token made": ({ details: { label, role, level, team, expires_at } }) => {
    const limits = { level: typeof level === "boolean" ? null : level, team: team ? String(team) : "" };
    const what = [roleText({ role: String(role), ...limits })];
    if (typeof expires_at === "number") what.push(`until ${minute(expires_at)}`);
    if (expires_at === null) what.push("until revoked");
    return `made the token “${label}” (${what.join(", ")})`;
  },
  "token revoked": (_, token) => `revoked the token ${token}`,
  "lost contact": ({ of, details: { state } }, _, names) =>
    state === "gone_home"
      ? `said that ${names.mention(of)} has gone home`
      : `saw to ${of === FORGOTTEN ? staffText(of) : names.mention(of)}, who lost contact`,
  "beacon put": ({ of, details }) =>
    `saved the beacon ${macText(of)}${details.correct_past ? " and began to correct its past" : ""}: ${placeOf(details)}${alsoText(idsOf(details.aliases))}${details.gone ? `, made one with ${idsOf(details.gone).map(macText).join(", ")}` : ""}`,
  "beacon removed": ({ of }) => `deleted the beacon ${macText(of)}`,
  "beacon corrected": ({ of, details }) =>
    `went on to correct the past of ${macText(of)}: ${placeOf(details)}`,
  "past corrected": ({ of, details }) =>
    `changed the place of ${details.detections} past detections of ${macText(of)}`,
  "correction undone": ({ of }) => `began to undo a correction of the past of ${macText(of)}`,
  "past given back": ({ of, details }) =>
    `gave ${details.detections} past detections of ${macText(of)} their old places`,
  "beacons imported": ({ details }) =>
    `imported beacons: ${details.added} added, ${details.changed} changed`,
  "person forgotten": ({ details }) => `forgot somebody, with ${details.detections} detections`,
  "person put": ({ of, details }) =>
    `saved ${staffText(of)}: ${[details.name, details.team, details.on_duty === false && "off duty"].filter(Boolean).join(", ") || "no more is known"}`,
  "person removed": ({ of }) => `took the name of ${staffText(of)} away`,
  "people imported": ({ details }) =>
    `imported people: ${details.added} added, ${details.changed} changed`,
};

/**
 * @param {AuditEntry} entry
 * @param {(id: string) => string | undefined} labelOf the label of a token, where it is known
 * @param {Names} names
 */
export function didText(entry, labelOf, names) {
  const { what, of, details } = entry;
  const label = labelOf(of);
  const say = Object.hasOwn(DID, what) ? DID[what] : null;
  if (say) return say(entry, label === undefined ? of : `“${label}”`, names);
  const more = Object.entries(details).map(([name, value]) => `${name} ${value}`);
  return [`${what}${of && ` ${of}`}`, ...more].join(", ");
}
