// One address that is read again and again: conditional, and honest about how old its data are.

const TIMEOUT_MS = 8_000;
// What may change without waiting for the next turn.
const WAKING = [
  [document, "visibilitychange"],
  [window, "online"],
  [window, "offline"],
];

export class Source {
  // `failure` is "" (what `data` says is current), "open", "unknown" or "network"; then `data` are
  // those of `takenAt` (unix seconds). `refused` is the text of an answer 4xx.
  constructor(url, seconds, changed) {
    Object.assign(this, { url, seconds, changed });
    this.data = null;
    this.takenAt = 0;
    this.failure = "";
    this.failingSince = 0;
    this.refused = "";
    this.etag = "";
    this.offset = Date.now() - performance.now(); // of the server's clock, in ms
  }

  // The server's unix seconds, so that a wall screen with a wrong clock tells ages right too.
  now() {
    return (performance.now() + this.offset) / 1000;
  }

  start() {
    this.refresh();
    this.timer = setInterval(() => document.hidden || this.refresh(), this.seconds * 1000);
    this.wake = () => document.hidden || this.refresh();
    for (const [target, name] of WAKING) target.addEventListener(name, this.wake);
    return this;
  }

  stop() {
    clearInterval(this.timer);
    for (const [target, name] of WAKING) target.removeEventListener(name, this.wake);
    this.changed = () => {};
  }

  refresh() {
    this.asking ??= this.#ask().finally(() => {
      this.asking = null;
      this.changed(this);
    });
    return this.asking;
  }

  async #ask() {
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const answer = await fetch(this.url, {
        headers,
        cache: "no-store",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      this.#setClock(answer);
      const circuit = answer.headers.get("X-Circuit-State") || "closed";
      if (answer.status >= 500 || answer.status === 429)
        return this.#fail(circuit === "open" ? "open" : "unknown");
      if (answer.status >= 400) return this.#refuse(await answer.json());
      if (answer.status !== 304) {
        this.data = (await answer.json()) ?? this.data; // null: nothing was ever read
        this.etag = this.data ? (answer.headers.get("ETag") ?? "") : "";
      }
      this.takenAt =
        Number(answer.headers.get("X-Taken-At")) ||
        (circuit === "closed" && this.data ? this.now() : 0);
      if (circuit !== "closed") return this.#fail(circuit);
      this.failure = this.refused = "";
    } catch (error) {
      console.warn(`${this.url} was not read:`, error);
      this.#fail("network");
    }
  }

  #fail(failure) {
    if (!this.failure) this.failingSince = this.now();
    this.failure = failure;
  }

  #refuse(problem) {
    this.failure = "";
    this.refused = problem.detail || problem.error || problem.title || "refused";
  }

  #setClock(answer) {
    const date = Date.parse(answer.headers.get("Date") ?? "");
    if (!Number.isNaN(date)) {
      const offset = date + 500 - performance.now(); // the header drops half a second on average
      if (Math.abs(offset - this.offset) > 1000) this.offset = offset;
    }
  }
}

// Reads once; an answer that is no success raises its problem as an Error.
export async function ask(url, options = {}) {
  let answer;
  try {
    answer = await fetch(url, {
      cache: "no-store",
      signal: AbortSignal.timeout(30_000),
      ...options,
    });
  } catch {
    throw new Error("Waymark cannot be reached. Try again.");
  }
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return { status: answer.status, body };
  const circuit = answer.headers.get("X-Circuit-State") === "open";
  const text = circuit
    ? "The circuit is open: no ingest service answers. Try again."
    : body?.detail || body?.error || body?.title;
  throw Object.assign(new Error(text || `Waymark answered ${answer.status}.`), {
    body,
    status: answer.status,
  });
}
