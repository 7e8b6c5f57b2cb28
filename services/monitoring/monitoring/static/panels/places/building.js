// The picture of the building: the plan of a level, or all levels from the side.
/** @import { Marker } from "../../drawings/marker_layout.js" */
/** @import { Source } from "../../page/source.js" */
/** @import { Person, Spot } from "../../rules/people/people_model.js" */
import { CrossSection } from "../../drawings/cross_section.js";
import { countPresent } from "../../drawings/marker_layout.js";
import { Plan } from "../../drawings/plan.js";
import { $ } from "../../page/dom.js";
import { isUnknown, levelText, peopleText } from "../../rules/words.js";

export class Building {
  /**
   * @param {object} [options]
   * @param {boolean} [options.isWall] text is large, and all levels fit the frame
   * @param {(marker: Marker) => void} [options.pick] called with a marker that is clicked
   * @param {(spot: import("../../drawings/plan_layout.js").Spot) => void} [options.chooseSpot] the same
   * @param {(level: string) => void} [options.chooseLevel] the same
   */
  constructor({ isWall = false, pick = () => {}, chooseSpot, chooseLevel } = {}) {
    this.plan = new Plan($("plan"), { isWall, pick, ...(chooseSpot && { choose: chooseSpot }) });
    this.section = new CrossSection($("section"), { isWall, pick, choose: chooseLevel });
  }

  /**
   * Reads the directory again where somebody is at a beacon that is new in it.
   * @param {Source<BeaconsAnswer>} beacons
   * @param {Person[]} present
   */
  keepUpToDate(beacons, present) {
    if (!beacons.data || present.some((person) => person.known && !person.spot)) beacons.refresh();
  }

  /**
   * @param {object} shown
   * @param {string[]} shown.levels
   * @param {string} shown.level "" for all of them
   * @param {Person[]} shown.people
   * @param {Spot[]} shown.spots
   * @param {string[]} [shown.trail] keys of spots of that level, in the order visited
   * @returns {HTMLElement} what shows it
   */
  show({ levels, level, people, spots, trail = [] }) {
    $("section").hidden = Boolean(level);
    $("plan").hidden = !level;
    /** @param {string} name */
    const spotsOf = (name) => spots.filter((spot) => spot.level === name);
    if (level) {
      const here = people.filter((person) => person.level === level);
      const label = `Plan of ${levelText(level)}: ${peopleText(countPresent(here))}`;
      this.plan.show(spotsOf(level), here, { label, trail });
      return $("plan");
    }
    // What has no known level takes no room while nobody is there.
    const busy = levels.filter((name) => !isUnknown(name) || people.some((person) => person.level === name));
    const stacked = busy.map((name) => ({ level: name, spots: spotsOf(name) }));
    const label = `Cross-section of ${busy.length} levels: ${peopleText(countPresent(people))}`;
    this.section.show(stacked, people, label);
    return $("section");
  }
}
