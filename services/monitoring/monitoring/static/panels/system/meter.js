// A bar that shows how much of a limit is used.
/** @import { Memory } from "../../rules/system/memory_use.js" */
import { el, setAttribute, setWidth } from "../../page/dom.js";
import { meterLevel } from "../../rules/system/memory_use.js";

export const createMeter = () => el("span", { class: "meter" }, el("span"));

/**
 * @param {HTMLElement} meter
 * @param {Memory | null | undefined} memory
 */
export function updateMeter(meter, memory) {
  const level = meterLevel(memory);
  meter.hidden = !level;
  setAttribute(meter, "class", `meter${level?.isFull ? " full" : ""}`);
  setWidth(meter.children[0], level?.percent ?? 0);
}
