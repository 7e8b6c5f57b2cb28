// How long somebody was in each spot, as bars.
/** @import { Visit } from "../../rules/histories/visits.js" */
import { $, el, keyed, setText, setWidth } from "../../page/dom.js";
import { timeSpent } from "../../rules/histories/visits.js";
import { duration, placeText } from "../../rules/words.js";

/**
 * @param {Visit[]} visits
 * @param {number} seconds of the whole range
 * @param {(spotKey: string) => void} choose called with the spot of a row that is clicked
 */
export function drawTimeSpent(visits, seconds, choose) {
  const spots = timeSpent(visits);
  const longest = spots[0]?.seconds || 1;
  const heard = duration(spots.reduce((sum, spot) => sum + spot.seconds, 0));
  const locations = spots.length === 1 ? "location" : "locations";
  const summary = `${spots.length} ${locations}, heard for ${heard} of ${duration(seconds)}`;
  setText($("dwell-summary"), summary);
  keyed(
    $("dwell"),
    spots,
    (spot) => spot.key,
    (spot) => {
      const parts = ["place", "amount", "bar"].map((name) => el("span", { class: name }));
      const button = el("button", { type: "button", title: "Show the next visit here" }, ...parts);
      button.addEventListener("click", () => choose(spot.key));
      return el("li", {}, button);
    },
    (row, spot) => {
      const [place, amount, bar] = row.children[0].children;
      const times = spot.visits > 1 ? `, ${spot.visits} visits` : "";
      setText(place, placeText(spot));
      setText(amount, `${duration(spot.seconds)}${times}`);
      setWidth(bar, Math.max(0.5, (spot.seconds / longest) * 100));
    },
  );
}
