// One small plot: a bar for each value over time.
import { el, svg } from "../page/dom.js";
import { clock } from "../rules/words.js";

/**
 * @typedef {{ timestamp: number, value: number | null, title: string }} Bar null: it failed
 */

/**
 * The end of an axis: 1, 2, 5 or 10 times a power of ten.
 * @param {number} most
 */
function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return power * ([1, 2, 5].find((step) => step * power >= most) ?? 10);
}

/**
 * Draws the values, the oldest first, each `step` seconds wide.
 * @param {HTMLElement} host
 * @param {Bar[]} values
 * @param {{ from: number, to: number, step: number, unit: string, label: string }} axes
 */
export function drawBars(host, values, { from, to, step, unit, label }) {
  const width = 600,
    height = 120;
  const top = roundUp(Math.max(1, ...values.map((bar) => bar.value ?? 0)));
  /** @param {number} time */
  const x = (time) => ((time - from) / (to - from)) * width;
  /** @param {number} value */
  const y = (value) => height - (value / top) * height;
  const lines = [0.5, 1].map((share) =>
    svg("line", { class: "grid", x1: 0, x2: width, y1: y(top * share), y2: y(top * share) }),
  );
  const shapes = values
    .filter((bar) => bar.timestamp >= from - step)
    .map((bar) => {
      const tall = bar.value === null ? height : Math.max(1, height - y(bar.value));
      return svg(
        "rect",
        {
          class: bar.value === null ? "bar-failed" : "bar-value",
          x: x(bar.timestamp),
          width: Math.max(0.8, (step / (to - from)) * width - 1),
          y: height - tall,
          height: tall,
        },
        svg("title", {}, bar.title),
      );
    });
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    ...lines,
    ...shapes,
  );
  host.replaceChildren(
    el(
      "div",
      { class: "scale quiet", "aria-hidden": "true" },
      el("span", {}, `${top.toLocaleString()} ${unit}`),
      el("span", {}, (top / 2).toLocaleString()),
      el("span", {}, "0"),
    ),
    picture,
    el(
      "div",
      { class: "ends quiet", "aria-hidden": "true" },
      el("span", {}, clock(from, { seconds: false })),
      el("span", {}, clock(to, { seconds: false })),
    ),
  );
}
