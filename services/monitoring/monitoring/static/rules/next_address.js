// Where a visitor goes after the log-in.

/**
 * The address that was asked for, if it is one of the page's own: else anybody could lead people
 * who have just typed a password to a page of theirs.
 * @param {string} search of the log-in's address
 */
export function nextAddress(search) {
  const next = new URLSearchParams(search).get("next") ?? "";
  return /^\/monitoring([/?]|$)/.test(next) ? next : "/monitoring";
}

/**
 * The token of a wall link, or of what is behind its `#`; null: it has none.
 * @param {string} text
 */
export const linkedToken = (text) => /#token=(.+)/.exec(text)?.[1].trim() ?? null;
