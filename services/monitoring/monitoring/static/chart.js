// One small plot: a bar for each value over time.
import { el, svg } from "./dom.js";
import { clock } from "./words.js";

function round(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most);
}

// values [{timestamp, value (null: failed), title}], the oldest first, each `step` seconds wide.
export function bars(host, values, { from, to, step, unit, label }) {
  const width = 600,
    height = 120;
  const top = round(Math.max(1, ...values.map((one) => one.value ?? 0)));
  const x = (time) => ((time - from) / (to - from)) * width;
  const y = (value) => height - (value / top) * height;
  const lines = [0.5, 1].map((share) =>
    svg("line", { class: "grid", x1: 0, x2: width, y1: y(top * share), y2: y(top * share) }),
  );
  const shapes = values
    .filter((one) => one.timestamp >= from - step)
    .map((one) => {
      const tall = one.value === null ? height : Math.max(1, height - y(one.value));
      return svg(
        "rect",
        {
          class: one.value === null ? "bar-failed" : "bar-value",
          x: x(one.timestamp),
          width: Math.max(0.8, (step / (to - from)) * width - 1),
          y: height - tall,
          height: tall,
        },
        svg("title", {}, one.title),
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
