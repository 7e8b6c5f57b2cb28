// What the screen Access says of tokens and people. Times are in unix seconds. Pure.
import { clock, levelText } from "../words.js";

/**
 * @param {Token} token
 * @param {number} now
 */
export const isValid = ({ revoked_at, expires_at }, now) =>
  revoked_at === null && (expires_at === null || expires_at > now);

/** @param {{ role: string, level?: number | string | null, team?: string | null }} token */
export const roleText = ({ role, level, team }) =>
  [role, level === null || level === undefined ? "" : levelText(level), team && `team ${team}`]
    .filter(Boolean)
    .join(", ");

/** @param {number} timestamp */
export const minute = (timestamp) => clock(timestamp, { seconds: false });

/**
 * Until when a token is valid, or since when it is not.
 * @param {Token} token
 * @param {number} now
 */
export function validityText({ revoked_at, expires_at }, now) {
  if (revoked_at !== null) return `revoked ${minute(revoked_at)}`;
  if (expires_at === null) return "until revoked";
  return `${expires_at > now ? "until" : "expired"} ${minute(expires_at)}`;
}

/**
 * @param {number} count
 * @param {string} singular
 * @param {string} plural
 */
const counted = (count, singular, plural) => `${count} ${count === 1 ? singular : plural}`;

/**
 * @param {number} people
 * @param {number} tokens
 */
export const summaryText = (people, tokens) =>
  `${counted(people, "person", "people")} may log in, ${counted(tokens, "token is", "tokens are")} valid`;
