// Reads one address again and again: conditionally, and honest about how old the data are.

const TIMEOUT_MS = 8_000;
/** The events after which an address is read at once. @type {[EventTarget, string][]} */
const WAKING = [
  [document, "visibilitychange"],
  [window, "online"],
  [window, "offline"],
];

/**
 * Why the newest read failed; "" when it did not.
 * @typedef {"" | "busy" | "open" | "unknown" | "network" | "ended"} Failure `ended`: the log-in has
 */

/**
 * What a circuit's state makes of a failed read.
 * @param {string} circuit
 * @returns {Failure}
 */
const failureOf = (circuit) => (circuit === "open" || circuit === "busy" ? circuit : "unknown");

/**
 * What a text says in JSON; undefined when it says nothing.
 * @param {string} text
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null;

/**
 * Whether an answer is a list of the API.
 * @param {any} answer
 */
const isList = (answer) => Array.isArray(answer?.data) && answer.data.every(isObject);

/**
 * @template T what the address answers
 */
export class Source {
  /** The newest data; while `failure` is not "", they are those of `takenAt`. @type {T | null} */
  data = null;
  takenAt = 0; // unix seconds
  /** @type {Failure} */
  failure = "";
  failingSince = 0;
  /** Why, as the monitoring service knows it. @type {Verdict | null} */
  verdict = null;
  refused = ""; // the text of a 4xx
  more = false;
  #etag = "";
  #clockOffsetMs = Date.now() - performance.now(); // of the server's clock
  /** @type {Promise<void> | null} */
  #reading = null;
  #timer = 0;
  #wake = () => {
    if (!document.hidden) this.refresh();
  };

  /**
   * @param {string} url
   * @param {number} seconds between two reads
   * @param {(source: Source<any>) => void} changed called after each read
   * @param {(answer: any) => boolean} isAnswer tells whether a 200 has what this address answers: if
   *   not, it is a failed read, and never an empty building
   */
  constructor(url, seconds, changed, isAnswer = isList) {
    this.url = url;
    this.seconds = seconds;
    this.changed = changed;
    this.isAnswer = isAnswer;
  }

  /** The server's unix seconds, so that a screen with a wrong clock tells ages right too. */
  now() {
    return (performance.now() + this.#clockOffsetMs) / 1000;
  }

  start() {
    this.refresh();
    this.#timer = setInterval(this.#wake, this.seconds * 1000);
    for (const [target, name] of WAKING) target.addEventListener(name, this.#wake);
    return this;
  }

  stop() {
    clearInterval(this.#timer);
    for (const [target, name] of WAKING) target.removeEventListener(name, this.#wake);
    this.changed = () => {};
  }

  /** Reads now; while a read is under way, that one counts. */
  refresh() {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
      this.changed(this);
    });
    return this.#reading;
  }

  async #read() {
    try {
      const answer = await fetch(this.url, {
        headers: this.#etag ? { "If-None-Match": this.#etag } : {},
        cache: "no-store",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      this.#setClock(answer);
      const circuit = answer.headers.get("X-Circuit-State") || "closed";
      this.verdict = parsed(answer.headers.get("X-Verdict") ?? "null") ?? null;
      if (answer.status >= 500 || answer.status === 429)
        return this.#fail(failureOf(circuit));
      if (answer.status === 401) return this.#fail("ended");
      if (answer.status >= 400) return this.#refuse(parsed(await answer.text()) ?? {});
      if (answer.status !== 304) {
        const data = parsed(await answer.text());
        const isNothing = data === null && circuit !== "closed"; // nothing was ever read
        if (!isNothing && !this.isAnswer(data)) {
          console.warn(`${this.url} was answered with something else`);
          return this.#fail("unknown");
        }
        this.data = data ?? this.data;
        this.#etag = this.data ? (answer.headers.get("ETag") ?? "") : "";
      }
      if (answer.headers.has("X-More") && this.data) {
        this.more = true;
        this.data = { ...this.data, complete: false };
      }
      this.takenAt =
        Number(answer.headers.get("X-Taken-At")) ||
        (circuit === "closed" && this.data ? this.now() : 0);
      if (circuit !== "closed") return this.#fail(failureOf(circuit));
      this.failure = this.refused = "";
    } catch (error) {
      console.warn(`${this.url} was not read:`, error);
      this.verdict = null;
      this.#fail("network");
    }
  }

  /** @param {Failure} failure */
  #fail(failure) {
    if (!this.failure) this.failingSince = this.now();
    this.failure = failure;
  }

  /** @param {Problem} problem */
  #refuse(problem) {
    this.failure = "";
    this.refused = problem.detail || problem.error || problem.title || "refused";
  }

  /** @param {Response} answer */
  #setClock(answer) {
    const date = Date.parse(answer.headers.get("Date") ?? "");
    if (!Number.isNaN(date)) {
      const offset = date + 500 - performance.now(); // the header drops half a second on average
      if (Math.abs(offset - this.#clockOffsetMs) > 1000) this.#clockOffsetMs = offset;
    }
  }
}
