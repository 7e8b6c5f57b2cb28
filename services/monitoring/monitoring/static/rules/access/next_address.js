// Where a visitor goes after the log-in.

/**
 * The address that was asked for, if it is one of the page's own: else anybody could lead people
 * who have just typed a password to a page of theirs. Whoever sees one level gets Live or the wall.
 * @param {string} search of the log-in's address
 * @param {string} [level] the only one that they see
 */
export function nextAddress(search, level) {
  const next = new URLSearchParams(search).get("next") ?? "";
  const isLive = /^\/monitoring([?]|$)/.test(next);
  if (level && !isLive) return `/monitoring?level=${encodeURIComponent(level)}`;
  return isLive || next.startsWith("/monitoring/") ? next : "/monitoring";
}

/**
 * The token of a wall link, or of what is behind its `#`; null: it has none.
 * @param {string} text
 */
export const linkedToken = (text) => /#token=(.+)/.exec(text)?.[1].trim() ?? null;
