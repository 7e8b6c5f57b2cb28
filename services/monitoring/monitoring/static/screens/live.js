// Live: where is everyone? The plan of a level, or the building from the side, and the list.
/** @import { Marker } from "../drawings/marker_layout.js" */
/** @import { Changes } from "../page/address.js" */
/** @import { PersonDetails } from "../panels/people/person_details.js" */
/** @import { Person, Spot } from "../rules/people/people_model.js" */
import { adopt, changeAddress, parameter } from "../page/address.js";
import { $, inputById, selectById, setText, showWithin } from "../page/dom.js";
import { names, readNames } from "../page/people.js";
import { isLimited, onlyLevel, showFreshness, shownLevel } from "../page/shell.js";
import { Source } from "../page/source.js";
import { isOf, shownTeam, whoseText } from "../page/team.js";
import { LostContact } from "../panels/people/lost_contact.js";
import { drawPeopleList, listed, orderName } from "../panels/people/people_list.js";
import { drawTeams, offerTeams } from "../panels/people/team_filter.js";
import { Building } from "../panels/places/building.js";
import { drawLevelTabs } from "../panels/places/level_tabs.js";
import { directorySpots, everyone, levelsOf, spotsToDraw } from "../rules/people/people_model.js";
import { bestMatch, finder, isNameOf } from "../rules/people/people_search.js";
import {
  duration,
  isComplete,
  levelTitle,
  peopleText,
  spotText,
} from "../rules/words.js";

const REFRESH_SECONDS = 5;
const DIRECTORY_SECONDS = 60;

/** @type {Source<StaffAnswer>} */
const staff = new Source("/monitoring/api/staff", REFRESH_SECONDS, draw);
/** @type {Source<BeaconsAnswer>} */
const beacons = new Source("/monitoring/api/beacons", DIRECTORY_SECONDS, draw);
// No part of the first paint: until it has come, its button is disabled.
const whoWasHere = import("../panels/places/who_was_here.js").then(
  ({ WhoWasHere }) =>
    new WhoWasHere(
      () => staff.now(),
      () => directorySpots(beacons.data?.data ?? []).known,
    ),
);
const building = new Building({
  pick,
  ...(!isLimited && { chooseSpot: async (spot) => (await whoWasHere).open(spot) }),
  chooseLevel: (level) => open({ level }),
});
// No part of the first paint.
/** @type {PersonDetails | undefined} */
let details;
import("../panels/people/person_details.js").then(
  ({ PersonDetails }) => {
    details = new PersonDetails($("person"), () => open({ person: "" }), draw);
    draw();
  },
  (error) => console.warn("No details of anybody can be shown:", error),
);
const lost = new LostContact((id) => open({ person: id }), draw);
const search = inputById("search");
const sort = selectById("sort");
/** @type {string[]} */
let levels = [];
/** Everybody, and who is lost. @type {{ all: Person[], lost: Person[] }} */
let lists = { all: [], lost: [] };
/** Whom Enter opens. @type {string | undefined} */
let first;

/**
 * A marker is a person. One of several leads to their room, or of several rooms to their level.
 * @param {Marker} marker
 */
function pick({ person, more }) {
  if (person) return open({ person: person.id });
  const first = more?.[0];
  if (!first) return;
  const isOneRoom = more.every((member) => member.spotKey === first.spotKey);
  if (isOneRoom) search.value = spotText(first);
  open({ level: onlyLevel ? "" : first.level, ...(isOneRoom && { q: spotText(first) }) });
}

/** @param {Changes} changes */
function open(changes) {
  changeAddress(changes);
  draw();
}

/** @param {Source<any>} [source] the one that was read */
function draw(source) {
  showFreshness(staff, ...(beacons.data ? [] : [beacons])); // without any, there is no building
  const directory = directorySpots(beacons.data?.data ?? []);
  const team = shownTeam();
  drawTeams(names.teams);
  if (team === null) return;
  if (staff.more) import("../page/crowd.js").then((crowd) => crowd.readTeam(staff, team));
  const everybody = everyone(staff, directory, parameter("person"), names);
  const isShown = isOf(team);
  const all = everybody.filter((person) => isShown(person.id));
  const present = all.filter((person) => !person.gone);
  const ghosts = lost.show(all, staff.failure, team);
  // Whoever is chosen is drawn, whenever heard.
  const drawn = all.filter((person) => !person.gone || person.picked || ghosts.has(person));
  const query = parameter("q").trim();
  const spots = spotsToDraw(directory, drawn).map((spot) =>
    isNameOf(query, spot) ? { ...spot, state: "chosen" } : spot,
  );
  const isFound = finder(query, spots);
  if (query) for (const person of all) person.dimmed = !isFound(person);
  levels = levelsOf(directory, drawn);
  lists = { all, lost: [...ghosts] };
  const level = shownLevel(levels, beacons.data);
  if (source === staff) building.keepUpToDate(beacons, present);
  const chosen = everybody.find((person) => person.picked);
  drawTabs(levels, level, present, team);
  drawPicture(level, drawn, spots, chosen);
  details?.show(chosen, parameter("person"), staff); // before the list: that gets lower by it
  drawPeopleList(staff, all, level, team, (id) => open({ person: id }));
  first = query ? bestMatch(listed(all, level), query)?.id : undefined;
  drawSummary(all, present, team);
}

/**
 * @param {string[]} levels
 * @param {string} level
 * @param {Person[]} present
 * @param {string} team
 */
function drawTabs(levels, level, present, team) {
  /** @param {string} name */
  const count = (name) => present.filter((person) => !name || person.level === name).length;
  const more = isComplete(staff.data) ? "" : "+";
  drawLevelTabs(levels, level, {
    count: (name) => (staff.data ? count(name) + more : "?"), // not 0: nobody knows
    title: (name) => {
      const least = more ? "at least " : "";
      const text = staff.data ? least + peopleText(count(name)) + whoseText(team) : "cannot be told now";
      return `${name ? levelTitle(name) : "All levels"}: ${text}`;
    },
    choose: (name) => open({ level: name }),
  });
}

/**
 * @param {string} level
 * @param {Person[]} drawn
 * @param {Spot[]} spots
 * @param {Person | undefined} chosen
 */
function drawPicture(level, drawn, spots, chosen) {
  const ready = Boolean(staff.data);
  $("skeleton").hidden = ready || Boolean(staff.failure);
  if (!ready) return;
  const trail = level && chosen?.level === level ? (details?.trail(level, spots) ?? []) : [];
  const picture = building.show({ levels, level, people: drawn, spots, trail });
  showChosen(picture, `${level} ${chosen?.id ?? ""}`);
}

let shownChosen = "";

/**
 * Brings the chosen person into view, once: where a picture is higher than its frame.
 * @param {HTMLElement} picture
 * @param {string} view which picture, of whom
 */
function showChosen(picture, view) {
  const marker = picture.querySelector(".marker.picked");
  if (marker && view !== shownChosen) showWithin(picture, marker);
  if (marker || !parameter("person")) shownChosen = view;
}

/**
 * @param {Person[]} all
 * @param {Person[]} present
 * @param {string} team
 */
function drawSummary(all, present, team) {
  if (!staff.data) {
    const ended = staff.failure || document.body.dataset.failed;
    setText($("summary"), ended ? "No positions to show yet" : "Loading…");
    return;
  }
  const gone = all.length - present.length;
  const longer = gone ? `, ${gone} longer ago` : "";
  const complete = isComplete(staff.data);
  const heard = `${peopleText(present.length)}${whoseText(team)} heard in the last 15 minutes${longer}`;
  setText($("summary"), complete ? heard : `At least ${heard}`);
  if (!complete && !present.length) setText($("summary"), "Who was heard cannot be told now");
  $("empty").hidden = Boolean(staff.failure || team) || !complete || present.length > 0;
  if ($("empty").hidden) return;
  const last = duration(staff.now() - Math.max(...all.map((person) => person.heardAt)));
  setText(
    $("empty-title"),
    all.length ? "Nobody was heard in the last 15 minutes" : "No detections yet",
  );
  setText(
    $("empty-since"),
    all.length
      ? `The last detection is ${last} old. Waymark works; no phone has reported a beacon since.`
      : "Waymark works; no phone has reported a beacon yet.",
  );
}

adopt(search, "q");
search.addEventListener("input", () => {
  changeAddress({ q: search.value }, { replace: true });
  draw();
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && first !== undefined) open({ person: first });
});
sort.value = orderName();
sort.addEventListener("change", () => {
  changeAddress({ sort: sort.value === "name" ? "" : sort.value }, { replace: true });
  draw();
});
offerTeams(draw);
window.addEventListener("popstate", () => {
  search.value = parameter("q");
  sort.value = orderName();
  draw();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  if (parameter("person")) open({ person: "" });
});
$("levels").hidden = Boolean(onlyLevel);
// Of admins alone, and no part of the first paint: until it has come, its button is disabled.
if (document.getElementById("wall"))
  import("../panels/access/wall_link.js").then(
    ({ offerWallLink }) => offerWallLink(() => levels),
    (error) => console.warn("Wall links cannot be made:", error),
  );
import("../panels/people/alarm.js").then(
  ({ offerAlarm }) => (lost.alarm = offerAlarm()),
  (error) => console.warn("Nobody is told aloud who lost contact:", error),
);
import("../panels/list_csv.js").then(
  ({ offerCsv, personColumns }) => {
    /** @param {string} name @param {Person[]} rows */
    const list = (name, rows) => {
      const at = staff.failure ? staff.takenAt : staff.now();
      const columns = personColumns(staff.failure ? at : 0, names);
      return { name: `${name} ${parameter("team")}`, at, columns, rows, complete: isComplete(staff.data) };
    };
    const level = () => shownLevel(levels, beacons.data);
    offerCsv("people-csv", () => list("staff", listed(lists.all, level())));
    offerCsv("lost-csv", () => list("lost contact", lists.lost));
  },
  (error) => console.warn("Lists cannot be saved:", error),
);
import("../panels/form_dialog.js").then(({ offerClosing }) => offerClosing());
beacons.start();
readNames(draw);
await staff.start().refresh(); // it tells the server's time
(await whoWasHere).showAddress();
