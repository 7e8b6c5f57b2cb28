// The details of one person, and where they were in the last half hour.
import { el, keyed, setText } from "./dom.js";
import { Source } from "./source.js";
import { visits } from "./visits.js";
import {
  ageText,
  clock,
  duration,
  levelText,
  macText,
  placeText,
  spotText,
  updateTime,
} from "./words.js";

const TRAIL_SECONDS = 1800;
const TRAIL_REFRESH_SECONDS = 10;
const TRAIL_DETECTIONS = 500;
const TRAIL_STEP_SECONDS = 60; // the address stays the same for so long, so that pages share one read

export class Person {
  constructor(host, close, changed) {
    Object.assign(this, { host, changed });
    this.source = null;
    this.closeButton = el(
      "button",
      { type: "button", class: "close", "aria-label": "Close the details", onclick: close },
      "×",
    );
    this.title = el("h2");
    this.facts = el("dl", { class: "facts" });
    this.steps = el("ol", { class: "steps", tabindex: "0", "aria-label": "Recent trail" });
    this.note = el("p", { class: "quiet" });
    this.replay = el("a", { class: "button" }, "Replay the last hour");
    host.append(
      el("div", { class: "panel-head" }, this.title, this.closeButton),
      this.facts,
      el("h3", {}, "Last half hour"),
      this.note,
      this.steps,
      this.replay,
    );
  }

  show(person, wanted, staff) {
    this.host.hidden = !wanted || !staff.data;
    this.#follow(wanted, staff);
    if (this.host.hidden) return;
    setText(this.title, `Staff ${wanted}`);
    const now = Math.floor(staff.now());
    this.replay.href = `/monitoring/replay?person=${encodeURIComponent(wanted)}&from=${now - 3600}&to=${now}`;
    this.facts.hidden = !person;
    if (person) this.#facts(person, staff.failure);
    this.#steps(person);
  }

  // The keys of the spots that were visited on a level, in order.
  trail(level, spots) {
    const byMac = new Map(spots.map((spot) => [spot.mac ?? spot.key, spot.key]));
    return this.#visits()
      .filter((visit) => String(visit.level) === level)
      .map((visit) => byMac.get(visit.mac))
      .filter(Boolean);
  }

  #visits() {
    return visits(this.source?.data?.data ?? []);
  }

  #follow(wanted, staff) {
    const from =
      Math.floor((staff.now() - TRAIL_SECONDS) / TRAIL_STEP_SECONDS) * TRAIL_STEP_SECONDS;
    const url = `/monitoring/api/staff/${encodeURIComponent(wanted)}/detections?from=${from}&limit=${TRAIL_DETECTIONS}`;
    if (!wanted) {
      this.source?.stop();
      this.source = null;
    } else if (this.source?.person !== wanted) {
      this.source?.stop();
      this.source = new Source(url, TRAIL_REFRESH_SECONDS, this.changed);
      this.source.person = wanted;
      this.source.start();
    } else this.source.url = url;
  }

  #facts(person, blind) {
    const heard = updateTime(
      (this.heard ??= el("time")),
      person.heardAt,
      blind ? clock(person.heardAt) : `${clock(person.heardAt)} (${ageText(person.age)})`,
    );
    const facts = [
      ["Where", `${spotText(person)}, ${levelText(person.level)}`],
      ["Last heard", heard],
      [
        "Beacon",
        macText(person.mac) + (Number.isFinite(person.rssi) ? `, ${person.rssi} dBm` : ""),
      ],
    ];
    if (person.ahead > 60)
      facts.push([
        "Phone's clock",
        `${duration(person.ahead)} ahead: the time it was received counts`,
      ]);
    keyed(
      this.facts,
      facts,
      ([name]) => name,
      ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
      (row, [, value]) => {
        if (value instanceof Node)
          row.lastChild.contains(value) || row.lastChild.replaceChildren(value);
        else setText(row.lastChild, value);
      },
    );
  }

  #steps(person) {
    const source = this.source;
    const list = this.#visits().reverse();
    const text = trailText(source, list.length);
    setText(this.note, text);
    this.note.hidden = !text;
    keyed(
      this.steps,
      list.slice(0, 12),
      (visit) => String(visit.from),
      () => el("li", {}, el("time"), el("span"), el("span", { class: "quiet" })),
      (row, visit) => {
        updateTime(row.children[0], visit.from, clock(visit.from, { seconds: false }));
        setText(
          row.children[1],
          person && visit.level === person.level ? spotText(visit) : placeText(visit),
        );
        setText(
          row.children[2],
          visit.to > visit.from ? duration(visit.to - visit.from) : "a moment",
        );
      },
    );
  }
}

function trailText(source, visited) {
  if (source?.refused) return `No trail: ${source.refused}.`;
  if (!source?.data) return source?.failure ? "The trail cannot be read now." : "Loading…";
  return visited ? "" : "Not heard in the last half hour.";
}
