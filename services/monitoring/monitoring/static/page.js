// Fetches the newest snapshot every 30 s and draws it; says plainly when it cannot tell.
import { ageText, banner, freshness, staffOrder, summary } from "./words.js";

const REFRESH_MS = 30_000;
const REDRAW_MS = 5_000;
const TIMEOUT_MS = 8_000;

let snapshot = null;
let receivedAt = 0; // performance.now() at which `snapshot.now` was true
let networkGone = false;

const element = (id) => document.getElementById(id);

function cell(className, ...content) {
  const td = document.createElement("td");
  td.className = className;
  td.append(...content);
  return td;
}

function heardCell(timestamp, now) {
  const mark = document.createElement("span");
  mark.className = `mark ${freshness(now - timestamp)}`;
  const time = document.createElement("time");
  const moment = new Date(timestamp * 1000);
  time.dateTime = moment.toISOString();
  time.title = `${moment.toLocaleString()} (${moment.toISOString().slice(0, 19)} UTC)`;
  time.textContent = ageText(now - timestamp);
  return cell("heard", mark, time);
}

function row(person, now) {
  const tr = document.createElement("tr");
  tr.dataset.staff = person.staff_id;
  tr.append(
    cell("staff", String(person.staff_id)),
    cell(person.level === "unknown" ? "level unknown" : "level", person.level),
    cell(person.location === "unknown" ? "place unknown" : "place", person.location),
    heardCell(person.timestamp, now),
    cell("number", `${person.rssi} dBm`),
    cell("mac", person.mac.match(/../g).join(":")),
  );
  return tr;
}

function draw() {
  const now = snapshot ? snapshot.now + (performance.now() - receivedAt) / 1000 : 0;
  const text = banner(snapshot, networkGone, now);
  element("banner").hidden = !text;
  if (element("banner").textContent !== text) element("banner").textContent = text;
  if (!snapshot?.taken_at) {
    if (text) {
      element("staff").hidden = true;
      element("summary").textContent = "No positions to show yet";
    }
    return;
  }
  const everyone = [...snapshot.staff].sort(staffOrder);
  const blind = Boolean(text);
  element("summary").textContent = summary(everyone.length, snapshot.taken_at);
  element("staff").hidden = everyone.length === 0;
  element("staff").className = blind ? "snapshot" : "";
  element("empty").hidden = blind || everyone.length > 0;
  element("staff").tBodies[0].replaceChildren(...everyone.map((person) => row(person, now)));
}

async function refresh() {
  try {
    const answer = await fetch("/monitoring/latest", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    snapshot = await answer.json();
    receivedAt = performance.now();
    networkGone = false;
  } catch (error) {
    console.warn("snapshot not read:", error);
    networkGone = true;
  }
  draw();
}

refresh();
setInterval(refresh, REFRESH_MS);
setInterval(draw, REDRAW_MS);
