// The plan of one level, drawn from the positions of its beacons: each zone is what is nearest to one.
import { bounds, floor, zones } from "./geometry.js";
import { setAttribute, svg } from "./dom.js";
import {
  drawMarkers,
  markerOf,
  markerWidth,
  moreOf,
  shorten,
  sizes,
  textWidth,
} from "./markers.js";

const STRETCH = 1.6;
const placed = (spot) => Number.isFinite(spot.x) && Number.isFinite(spot.y);

export class Plan {
  // `pick` is called with the item of a marker, `choose` with a spot whose zone was clicked.
  constructor(host, { pick = () => {}, choose = null } = {}) {
    Object.assign(this, { host, pick, choose });
    this.still = svg("g", { class: "floor" });
    this.path = svg("g", { class: "trail" });
    this.names = svg("g", { class: "names" });
    this.markers = svg("g", { class: "markers" });
    this.root = svg(
      "svg",
      { class: "plan", role: "img" },
      hatch(),
      this.still,
      this.path,
      this.names,
      this.markers,
    );
    this.drawn = "";
    host.append(this.root);
    new ResizeObserver(() => this.last && this.show(...this.last)).observe(host);
  }

  // spots {key, level, location, x, y, state, note}; people {id, spotKey, fresh, title, picked};
  // trail: spots in the order they were visited.
  show(spots, people = [], { trail = [], label = "" } = {}) {
    this.last = [spots, people, { trail, label }];
    setAttribute(this.root, "aria-label", label);
    const frame = {
      width: this.host.clientWidth,
      height: parseFloat(getComputedStyle(this.host).maxHeight) || Infinity,
    };
    if (!frame.width) return;
    const version = JSON.stringify([frame, spots]);
    if (version !== this.drawn) {
      const moved =
        this.frame && (this.frame.width !== frame.width || this.frame.height !== frame.height);
      this.root.classList.toggle("resized", Boolean(moved)); // no gliding while the window is dragged
      this.frame = frame;
      this.drawn = version;
      this.size = sizes(frame.width / (sizes().unit * 58));
      this.#lay(spots, frame);
    } else this.root.classList.remove("resized");
    this.#drawTrail(trail);
    drawMarkers(this.markers, this.#slots(people), this.size, this.pick);
  }

  // Gives every spot its place in px: on the floor, or in boxes below it when it has no position.
  #lay(spots, { width, height }) {
    this.names.replaceChildren();
    const on = spots.filter(placed),
      off = spots.filter((spot) => !placed(spot));
    const { unit } = this.size;
    const cell = { width: Math.min(width, unit * 10), height: unit * 4.2 };
    const columns = Math.max(1, Math.floor(width / cell.width));
    const rows = Math.ceil(off.length / columns);
    const band = rows ? rows * cell.height + unit * 1.8 : 0;
    this.at = new Map();
    const shapes = [];
    let used = 0;
    if (on.length) {
      const box = floor(on);
      const room = Math.max(height === Infinity ? width * 0.6 : height - band, unit * 12);
      // Somewhat stretched where that uses the room: who is where matters here, not the distance.
      const wide = width / (box.right - box.left),
        tall = room / (box.bottom - box.top);
      const across = Math.min(wide, tall * STRETCH),
        down = Math.min(tall, wide * STRETCH);
      used = (box.bottom - box.top) * down;
      const left = (width - (box.right - box.left) * across) / 2;
      const toPx = (p) => ({ x: left + (p.x - box.left) * across, y: (p.y - box.top) * down });
      const corner = toPx({ x: box.left, y: box.top });
      shapes.push(
        svg("rect", {
          class: "outline",
          x: corner.x + 1,
          y: 1,
          width: (box.right - box.left) * across - 2,
          height: used - 2,
          rx: unit * 0.6,
        }),
      );
      zones(on, box).forEach((polygon, index) => {
        const points = polygon.map(toPx);
        shapes.push(this.#zone(on[index], toPx(on[index]), bounds(points), points));
      });
    }
    if (off.length) {
      const top = used + unit * 1.4;
      shapes.push(
        svg(
          "text",
          { class: "aside", x: 2, y: top, "font-size": this.size.small },
          on.length
            ? "Not on the plan: no position in the directory"
            : "No position in the directory",
        ),
      );
      off.forEach((spot, index) => {
        const x = (index % columns) * cell.width,
          y = top + unit * 0.5 + Math.floor(index / columns) * cell.height;
        const box = { left: x + 2, right: x + cell.width - 4, top: y, bottom: y + cell.height - 6 };
        const points = [
          { x: box.left, y: box.top },
          { x: box.right, y: box.top },
          { x: box.right, y: box.bottom },
          { x: box.left, y: box.bottom },
        ];
        shapes.push(
          this.#zone(
            spot,
            { x: (box.left + box.right) / 2, y: box.top + cell.height * 0.35 },
            box,
            points,
          ),
        );
      });
    }
    const whole = Math.max(used + band, unit * 8);
    setAttribute(this.root, "width", width);
    setAttribute(this.root, "height", whole);
    setAttribute(this.root, "viewBox", `0 0 ${width} ${whole}`);
    this.still.replaceChildren(...shapes);
  }

  #zone(spot, center, box, points) {
    const { unit } = this.size;
    this.at.set(spot.key, { ...center, box });
    const group = svg("g", { class: `zone ${spot.state ?? ""}`, "data-spot": spot.key });
    group.append(
      svg("title", {}, spot.title ?? spot.location),
      svg("polygon", {
        points: points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" "),
      }),
    );
    group.append(
      svg("circle", { class: "beacon", cx: center.x, cy: center.y, r: Math.max(1.5, unit * 0.14) }),
    );
    const room = box.right - box.left,
      px = this.size.small;
    const name = shorten(spot.location, Math.max(3, Math.floor(room / (px * 0.52))));
    if (
      textWidth(name, px) < room - 4 &&
      box.bottom - box.top > unit * 1.6 &&
      name.length > Math.min(3, spot.location.length - 1)
    ) {
      const half = textWidth(name, px) / 2 + 3;
      const x = Math.min(Math.max(center.x, half), this.frame.width - half);
      this.names.append(
        svg(
          "text",
          {
            class: `name ${spot.state ?? ""}`,
            x,
            y: center.y - unit * 0.45,
            "font-size": px,
            "text-anchor": "middle",
          },
          name,
        ),
      );
    }
    if (spot.note && textWidth(spot.note, this.size.text, 600) < room - 4)
      this.names.append(
        svg(
          "text",
          {
            class: `note ${spot.state ?? ""}`,
            x: center.x,
            y: center.y + unit * 1.15,
            "font-size": this.size.text,
            "text-anchor": "middle",
          },
          spot.note,
        ),
      );
    if (this.choose) group.addEventListener("click", () => this.choose(spot));
    return group;
  }

  // Places people under the name of their spot, side by side, as many as its zone has room for.
  #slots(people) {
    const { height, unit } = this.size;
    const crowds = Map.groupBy ? Map.groupBy(people, (person) => person.spotKey) : group(people);
    return [...crowds].flatMap(([key, crowd]) => {
      const spot = this.at.get(key);
      if (!spot) return [];
      const width =
        Math.max(...crowd.map((person) => markerWidth(shorten(person.id, 8), this.size))) + 2;
      const columns = Math.max(1, Math.floor((spot.box.right - spot.box.left) / width));
      const rows = Math.max(1, Math.floor((spot.box.bottom - spot.y - unit * 0.3) / (height + 2)));
      const room = columns * rows;
      const shown = crowd.length > room ? crowd.slice(0, room - 1) : crowd;
      const perRow = Math.min(columns, Math.max(1, Math.min(crowd.length, room)));
      const at = (index) => {
        const row = Math.floor(index / perRow),
          inRow = Math.min(perRow, Math.min(crowd.length, room) - row * perRow);
        return {
          px: spot.x + ((index % perRow) - (inRow - 1) / 2) * width,
          py: spot.y + unit * 0.95 + row * (height + 2),
        };
      };
      const items = shown.map((person, index) => markerOf(person, this.size, at(index)));
      if (crowd.length > shown.length)
        items.push(moreOf(key, crowd.slice(shown.length), this.size, at(shown.length)));
      return items;
    });
  }

  #drawTrail(trail) {
    const points = trail.map((key) => this.at.get(key)).filter(Boolean);
    const line = points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ");
    if (line === this.line) return;
    this.line = line;
    const dots = points.map((p, index) =>
      svg("circle", {
        cx: p.x,
        cy: p.y,
        r: this.size.unit * 0.22,
        opacity: 0.35 + (0.65 * (index + 1)) / points.length,
      }),
    );
    this.path.replaceChildren(
      ...(points.length > 1 ? [svg("polyline", { points: line })] : []),
      ...dots,
    );
  }
}

function group(people) {
  const crowds = new Map();
  for (const person of people)
    crowds.set(person.spotKey, [...(crowds.get(person.spotKey) ?? []), person]);
  return crowds;
}

// A gap in the coverage is striped as well as red.
function hatch() {
  return svg(
    "defs",
    {},
    svg(
      "pattern",
      {
        id: "hatch",
        width: 8,
        height: 8,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      },
      svg("rect", { width: 8, height: 8, class: "hatch-paper" }),
      svg("rect", { width: 3, height: 8, class: "hatch-line" }),
    ),
  );
}
