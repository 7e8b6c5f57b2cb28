// The wall screen: Live to be read from across a room and touched by nobody, at `/monitoring?wall`.
/** @import { Line } from "../panels/exceptions.js" */
/** @import { Person } from "../rules/people/people_model.js" */
import { parameter } from "../page/address.js";
import { $, setAttribute, setText } from "../page/dom.js";
import { names, readNames } from "../page/people.js";
import { isLimited, officeGapMinutes, onlyLevel, showFreshness, shownLevel } from "../page/shell.js";
import { Source } from "../page/source.js";
import { isOf, shownTeam, whoseText } from "../page/team.js";
import { drawExceptions } from "../panels/exceptions.js";
import { lostMinutes } from "../panels/people/lost_contact.js";
import { Building } from "../panels/places/building.js";
import { byHowOften } from "../rules/directory/unknown_beacons.js";
import { isSeenTo, lostContact, seenToText } from "../rules/people/lost_contact.js";
import { directorySpots, everyone, levelsOf, spotsToDraw } from "../rules/people/people_model.js";
import { byLongestGap, sinceText, withStates } from "../rules/places/coverage_states.js";
import { clock, duration, isComplete, levelText, macText, minutesOf, peopleText, spotText } from "../rules/words.js";

const REFRESH_SECONDS = 5;
const DIRECTORY_SECONDS = 60;
const EXCEPTIONS_SECONDS = 15;
// Without a good read for so long, what is shown is old, whatever the reason.
const CURRENT_SECONDS = 20;

/** @type {Source<StaffAnswer>} */
const staff = new Source("/monitoring/api/staff", REFRESH_SECONDS, draw);
/** @type {Source<BeaconsAnswer>} */
const beacons = new Source("/monitoring/api/beacons", DIRECTORY_SECONDS, draw);
/** @type {Source<CoverageAnswer>} */
const coverage = new Source("/monitoring/api/coverage", EXCEPTIONS_SECONDS, drawColumn);
/** @type {Source<UnknownAnswer>} */
const unknown = new Source("/monitoring/api/beacons/unknown", EXCEPTIONS_SECONDS, drawColumn);
const building = new Building({ isWall: true });
const gapMinutes = minutesOf(parameter("gap"), officeGapMinutes);
/** @type {Person[]} */
let all = [];
let level = onlyLevel;

/** @param {Source<any>} [source] the one that was read */
function draw(source) {
  showFreshness(staff, ...(beacons.data ? [] : [beacons])); // without any, there is no building
  const directory = directorySpots(beacons.data?.data ?? []);
  const team = shownTeam();
  if (team === null) return;
  if (staff.more) import("../page/crowd.js").then((crowd) => crowd.readTeam(staff, team));
  const isShown = isOf(team);
  all = everyone(staff, directory, "", names).filter((person) => isShown(person.id));
  const present = all.filter((person) => !person.gone);
  if (source === staff) building.keepUpToDate(beacons, present);
  const levels = levelsOf(directory, present);
  level = shownLevel(levels, beacons.data);
  $("skeleton").hidden = Boolean(staff.data || staff.failure);
  if (staff.data) {
    building.show({ levels, level, people: present, spots: spotsToDraw(directory, present) });
  }
  setText($("summary"), summaryText(present, team));
  drawColumn();
  drawClock();
}

/**
 * @param {Person[]} present
 * @param {string} team
 */
function summaryText(present, team) {
  if (!staff.data) return staff.failure ? "No positions to show yet" : "Loading…";
  const here = level ? present.filter((person) => person.level === level) : present;
  const where = level ? ` on ${levelText(level)}` : "";
  const heard = `${peopleText(here.length)}${whoseText(team)} heard in the last 15 minutes${where}`;
  if (isComplete(staff.data)) return heard;
  return here.length ? `At least ${heard}` : "Who was heard cannot be told now";
}

function drawColumn() {
  const exceptions = [{ name: "lost", lines: staff.data && lost(), none: `Nobody of this shift for ${lostMinutes()} min` }];
  if (!isLimited) {
    const visited = `Every place was visited in ${gapMinutes} min`;
    exceptions.push({ name: "gaps", lines: current(coverage) && gaps(), none: visited });
    exceptions.push({ name: "unknown", lines: current(unknown) && strangers(), none: "None" });
  }
  drawExceptions(exceptions);
}

/** What was read, unless the newest read failed. @template T @param {Source<T>} source */
const current = (source) => (source.failure ? null : source.data);
/** @param {{ level: string }} item */
const isHere = (item) => !level || item.level === level;

/** @returns {Line[]} */
const lost = () =>
  lostContact(all, lostMinutes())
    .filter(isHere)
    .map((person) => ({
      key: person.id,
      what: person.called,
      where: isSeenTo(person) ? seenToText(person) : `${spotText(person)}, ${levelText(person.level)}`,
      isDone: isSeenTo(person),
      age: staff.failure ? clock(person.heardAt, { seconds: false }) : duration(person.age),
    }));

/** @returns {Line[]} */
const gaps = () =>
  withStates(coverage.data?.data ?? [], coverage.now(), gapMinutes)
    .filter((gap) => gap.state === "gap" && isHere(gap))
    .sort(byLongestGap)
    .map((gap) => ({
      key: gap.key,
      what: gap.label,
      where: levelText(gap.level),
      age: sinceText(gap.age),
    }));

/** @returns {Line[]} */
const strangers = () =>
  byHowOften(unknown.data?.data ?? []).often.map((beacon) => ({
    key: beacon.mac,
    what: macText(beacon.mac),
    where: "",
    age: duration(Math.max(0, unknown.now() - beacon.last_heard)),
  }));

/** It stands still when nothing new is shown: whoever looks at it sees that at once. */
function drawClock() {
  const seen = staff.takenAt;
  const isBroken = Boolean(staff.failure || document.body.dataset.failed);
  const stopped = isBroken || staff.now() - seen > CURRENT_SECONDS;
  const at = stopped ? seen : staff.now();
  const [time, says] = $("clock").children;
  setAttribute($("clock"), "data-stopped", stopped);
  setText(time, at ? clock(at) : "--:--:--");
  setText(says, stopped && at ? `stopped ${duration(staff.now() - at)} ago` : "");
}

beacons.start();
if (!isLimited) for (const source of [coverage, unknown]) source.start();
setInterval(drawClock, 1000);
readNames(draw);
await staff.start().refresh();
