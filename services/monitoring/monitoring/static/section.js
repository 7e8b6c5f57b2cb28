// The building from the side: all levels at once, the highest on top, for the wall screen.
import { bounds } from "./geometry.js";
import { setAttribute, setText, svg } from "./dom.js";
import { drawMarkers, markerOf, moreOf, shorten, sizes, textWidth } from "./markers.js";
import { Level, isUnknown } from "./words.js";

export class Section {
  constructor(host, { pick = () => {}, choose = () => {} } = {}) {
    Object.assign(this, { host, pick, choose });
    this.still = svg("g", { class: "floor" });
    this.markers = svg("g", { class: "markers" });
    this.root = svg("svg", { class: "section", role: "img" }, this.still, this.markers);
    this.drawn = "";
    host.append(this.root);
    new ResizeObserver(() => this.last && this.show(...this.last)).observe(host);
  }

  // levels [{level, spots}], the lowest first; people {id, level, spotKey, ...}.
  show(levels, people, label) {
    this.last = [levels, people, label];
    setAttribute(this.root, "aria-label", label);
    const frame = { width: this.host.clientWidth, height: this.host.clientHeight };
    if (!frame.width) return;
    const version = JSON.stringify([frame, levels]);
    if (version !== this.drawn) {
      this.root.classList.toggle("resized", Boolean(this.drawn));
      this.drawn = version;
      this.#lay(levels, frame);
    } else this.root.classList.remove("resized");
    const crowds = new Map(levels.map(({ level }) => [level, []]));
    for (const person of people) crowds.get(person.level)?.push(person);
    const items = [];
    for (const [level, crowd] of crowds) {
      setText(this.strips.get(level).count, crowd.length ? String(crowd.length) : "–");
      items.push(...this.#stack(level, crowd));
    }
    drawMarkers(this.markers, items, this.size, this.pick);
  }

  #lay(levels, { width, height }) {
    this.size = sizes(height / levels.length / (sizes().unit * 6));
    const { unit, small } = this.size;
    const gutter = unit * (width > 560 ? 6.2 : 3.4);
    const strip = Math.max(unit * 3.6, height / Math.max(1, levels.length));
    const spots = levels.flatMap((one) => one.spots.filter((spot) => Number.isFinite(spot.x)));
    const box = spots.length ? bounds(spots.map(({ x, y }) => ({ x, y }))) : { left: 0, right: 1 };
    const span = Math.max(1, box.right - box.left);
    const inner = { left: gutter + unit * 3, right: width - unit * 3 };
    this.right = width - unit * 0.4;
    this.left = gutter;
    this.at = new Map();
    this.strips = new Map();
    const shapes = [];
    const known = levels.filter(({ level }) => !isUnknown(level)).reverse();
    [...known, ...levels.filter(({ level }) => isUnknown(level))].forEach(
      ({ level, spots: here }, index) => {
        const top = index * strip,
          ground = top + strip - unit * 1.3;
        const count = svg("text", {
          class: "count",
          x: unit * 0.3,
          y: ground + unit * 0.05,
          "font-size": small,
        });
        const name = isUnknown(level) ? "Unknown" : Level(level);
        const title = width > 560 ? name : name.replace("Level ", "L").replace("Unknown", "?");
        const group = svg(
          "g",
          { class: "strip", "data-level": level },
          svg("rect", {
            class: "air",
            x: gutter,
            y: top + 3,
            width: width - gutter,
            height: strip - 6,
            rx: unit * 0.4,
          }),
          svg(
            "text",
            { class: "level", x: unit * 0.3, y: ground - unit * 1.1, "font-size": unit * 0.95 },
            title,
          ),
          count,
          svg("line", {
            class: "slab",
            x1: gutter + unit * 0.5,
            x2: width - unit * 0.5,
            y1: ground,
            y2: ground,
          }),
        );
        group.addEventListener("click", () => this.choose(level));
        let free = -Infinity;
        const placed = here
          .filter((spot) => Number.isFinite(spot.x))
          .sort((one, other) => one.x - other.x);
        for (const spot of placed) {
          const x = inner.left + ((spot.x - box.left) / span) * (inner.right - inner.left);
          this.at.set(spot.key, { x, ground, top });
          group.append(
            svg("line", {
              class: "tick",
              x1: x,
              x2: x,
              y1: ground - unit * 0.25,
              y2: ground + unit * 0.25,
            }),
          );
          const name = shorten(spot.location, 14),
            half = textWidth(name, small) / 2 + 4;
          if (x - half > free && x + half <= width) {
            free = x + half;
            group.append(
              svg(
                "text",
                { class: "name", x, y: ground + unit, "font-size": small, "text-anchor": "middle" },
                name,
              ),
            );
          }
        }
        const lost = here.filter((spot) => !Number.isFinite(spot.x));
        lost.forEach((spot, n) => {
          const x = placed.length
            ? inner.right
            : inner.left + (n + 0.5) * ((inner.right - inner.left) / lost.length);
          this.at.set(spot.key, { x, ground, top });
          if (placed.length) return;
          const name = shorten(spot.location, 22),
            half = textWidth(name, small) / 2 + 4;
          if (x - half < free) return;
          free = x + half;
          group.append(
            svg(
              "text",
              { class: "name", x, y: ground + unit, "font-size": small, "text-anchor": "middle" },
              name,
            ),
          );
        });
        this.strips.set(level, { count, top, ground });
        shapes.push(group);
      },
    );
    const whole = strip * levels.length;
    setAttribute(this.root, "width", width);
    setAttribute(this.root, "height", whole);
    setAttribute(this.root, "viewBox", `0 0 ${width} ${whole}`);
    this.still.replaceChildren(...shapes);
  }

  // People stand above their spot; where two would overlap, the second stands on the first.
  #stack(level, crowd) {
    const { height, unit } = this.size;
    const { top, ground } = this.strips.get(level);
    const rows = Array.from(
      { length: Math.max(1, Math.floor((ground - top - unit * 0.3) / (height + 2))) },
      () => -Infinity,
    );
    const standing = crowd.map((person) => ({
      person,
      x: this.at.get(person.spotKey)?.x ?? this.right,
    }));
    standing.sort((one, other) => one.x - other.x || one.person.order - other.person.order);
    const items = [];
    let left = [];
    const clamp = (x, width) =>
      Math.min(Math.max(x, this.left + width / 2 + 2), this.right - width / 2);
    for (const { person, x } of standing) {
      const item = markerOf(person, this.size, {});
      item.px = clamp(x, item.width);
      let row = rows.findIndex((end) => end <= item.px - item.width / 2);
      if (row < 0) {
        // No room above the spot: beside it, unless that would be another spot's place.
        row = rows.indexOf(Math.min(...rows));
        const beside = rows[row] + item.width / 2;
        if (beside - item.px > unit * 4 || beside + item.width / 2 > this.right) {
          left.push(person);
          continue;
        }
        item.px = beside;
      }
      rows[row] = item.px + item.width / 2 + 3;
      items.push({ ...item, py: ground - unit * 0.35 - height / 2 - row * (height + 2) });
    }
    if (left.length) {
      // The last one makes room for the count of those who found none.
      const last = items.pop();
      left = [last.person, ...left];
      const more = moreOf(level, left, this.size, { py: last.py });
      items.push({ ...more, px: clamp(last.px, more.width) });
    }
    return items;
  }
}
