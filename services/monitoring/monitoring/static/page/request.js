// One request to the API. An answer that is no success raises its problem as an Error.

const TIMEOUT_MS = 30_000;

/** What the API answered instead of a success. */
export class RequestFailed extends Error {
  /**
   * @param {string} message
   * @param {Problem | null} [problem]
   */
  constructor(message, problem = null) {
    super(message);
    this.problem = problem;
  }
}

/** What a circuit's state says to somebody who waits. @type {Record<string, string>} */
const CIRCUIT = {
  open: "The circuit is open: no ingest service answers. Try again.",
  busy: "Waymark is busy: too many requests at once. Try again in a second.",
};

/**
 * The header with which a person's write proves that it comes from this page. Asked for each time:
 * another tab may have logged in anew.
 * @returns {Promise<Record<string, string>>}
 */
async function proof() {
  const answer = await fetch("/api/v1/session", { cache: "no-store" }).catch(() => null);
  const session = answer?.ok ? await answer.json().catch(() => null) : null;
  return session?.csrf_token ? { "X-CSRF-Token": session.csrf_token } : {};
}

/** @typedef {RequestInit & { headers?: Record<string, string> }} Options */

/**
 * @param {string} url
 * @param {Options} [options]
 * @returns {Promise<any>} the body; null without one
 */
export const request = async (url, options) => (await answerTo(url, options)).body;

/**
 * The body, and what names this state of it: a write that is to change no other sends it back.
 * @param {string} url
 * @param {Options} [options]
 * @returns {Promise<{ body: any, tag: string }>}
 */
export async function answerTo(url, options = {}) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const headers = options.method ? { ...options.headers, ...(await proof()) } : options.headers;
  const all = { cache: /** @type {const} */ ("no-store"), signal, ...options, headers };
  const answer = await fetch(url, all).catch(() => {
    throw new RequestFailed("Waymark cannot be reached. Try again.");
  });
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return { body, tag: answer.headers.get("ETag") ?? "" };
  const ended = answer.status === 401 && "Your log-in has ended: log in again.";
  const text =
    ended ||
    CIRCUIT[answer.headers.get("X-Circuit-State") ?? ""] ||
    body?.detail ||
    body?.error ||
    body?.title;
  throw new RequestFailed(text || `Waymark answered ${answer.status}.`, body);
}
