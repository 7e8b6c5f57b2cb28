// Batteries of beacons: the mark of each in the table, and the list of those to change next.
import { $, el, keyed, setAttribute, setText, setWidth } from "../../page/dom.js";
import { updateTime } from "../../page/time_element.js";
import { MAX_NEXT, batteryText, changeText } from "../../rules/directory/batteries.js";
import { duration, levelText, macText } from "../../rules/words.js";
import { timeColumns } from "../list_csv.js";

/** @typedef {Beacon & { battery: Battery }} Powered */

export const createBattery = () =>
  el("span", { class: "battery" }, el("span"), el("span", { class: "meter" }, el("span")));

/**
 * @param {Element} node
 * @param {Battery | undefined} battery
 */
export function updateBattery(node, battery) {
  const [text, meter] = node.children;
  setText(text, battery ? batteryText(battery) : "–");
  setAttribute(meter, "hidden", !battery);
  if (!battery) return;
  setAttribute(meter, "class", `meter${battery.low ? " full" : ""}`);
  setWidth(meter.children[0], Math.round(battery.left * 100));
}

/**
 * @param {Powered[]} powered the next to change first
 * @param {number} now
 */
export function drawNext(powered, now) {
  $("batteries").hidden = powered.length === 0;
  keyed(
    $("batteries-next"),
    powered.slice(0, MAX_NEXT),
    (beacon) => beacon.mac,
    () => el("li", {}, el("strong"), el("span"), createBattery(), el("time", { class: "quiet" })),
    (row, beacon) => {
      const [place, change, battery, told] = row.children;
      setText(place, `${beacon.location}, ${levelText(beacon.level)}`);
      setText(change, `${macText(beacon.mac)}: ${changeText(beacon.battery, now)}`);
      updateBattery(battery, beacon.battery);
      const { at } = beacon.battery;
      updateTime(told, at, `told ${duration(Math.max(0, now - at))} ago`);
    },
  );
}

/** @type {import("../list_csv.js").Columns<Powered>} */
export const batteryColumns = {
  level: (beacon) => beacon.level,
  location: (beacon) => beacon.location,
  mac: (beacon) => beacon.mac,
  battery: (beacon) => beacon.battery.value,
  unit: (beacon) => beacon.battery.unit,
  low: (beacon) => (beacon.battery.low ? "low" : ""),
  per_day: (beacon) => beacon.battery.per_day,
  ...timeColumns("empty", (/** @type {Powered} */ beacon) => beacon.battery.empty_at),
  ...timeColumns("told", (/** @type {Powered} */ beacon) => beacon.battery.at),
};
