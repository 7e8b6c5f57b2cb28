// Draws the plan of one level; plan_layout.js says where everything stands.
/** @import { Point } from "../rules/places/geometry.js" */
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
/** @import { Label, PlanLayout, Spot, Zone } from "./plan_layout.js" */
import { setAttribute, setAttributes, setText, svg } from "../page/dom.js";
import { peopleText } from "../rules/words.js";
import { crowdStep } from "./crowd_layout.js";
import { LEGIBLE_ROOM } from "./marker_layout.js";
import { drawMarkers } from "./markers.js";
import { countBySpot, layOutPlan, nameLabel, placePeople, trailPoints } from "./plan_layout.js";
import { rootFontSize, scaleFor } from "./text_size.js";

const WIDTH_IN_REM = 58; // the width at which markers have their normal size

export class Plan {
  /** @type {[Spot[], Figure[], { trail: string[], label: string }] | null} */
  #last = null;
  /** @type {{ version: string, frame: { width: number, height: number }, scale: Scale, layout: PlanLayout } | null} */
  #drawn = null;
  #trailDrawn = "";

  /**
   * @param {HTMLElement} host
   * @param {{ isWall?: boolean, pick?: (marker: Marker) => void, choose?: (spot: Spot) => void }} [options]
   *   `pick` is called with a marker that is clicked, `choose` with a spot
   */
  constructor(host, { isWall = false, pick = () => {}, choose } = {}) {
    this.host = host;
    this.leastRoom = isWall ? LEGIBLE_ROOM : 0;
    this.pick = pick;
    this.choose = choose;
    this.floor = svg("g", { class: "floor" });
    this.trail = svg("g", { class: "trail" });
    this.names = svg("g", { class: "names" });
    this.markers = svg("g", { class: "markers" });
    const layers = [hatch(), this.floor, this.trail, this.names, this.markers];
    this.root = svg("svg", { class: "plan", role: "img" }, ...layers);
    host.append(this.root);
    new ResizeObserver(() => this.#last && this.show(...this.#last)).observe(host);
  }

  /**
   * @param {Spot[]} spots
   * @param {Figure[]} people
   * @param {{ trail?: string[], label?: string }} [more] `trail`: keys of spots, in the order visited
   */
  show(spots, people, { trail = [], label = "" } = {}) {
    this.#last = [spots, people, { trail, label }];
    setAttribute(this.root, "aria-label", label);
    const frame = {
      width: this.host.clientWidth,
      height: parseFloat(getComputedStyle(this.host).maxHeight) || Infinity,
    };
    if (!frame.width) return;
    const { scale, layout } = this.#draw(spots, frame);
    this.#drawCrowds(people, layout, scale);
    this.#drawTrail(trailPoints(trail, layout.zones), scale);
    drawMarkers(this.markers, placePeople(people, layout.zones, scale), scale, this.pick);
  }

  /**
   * Draws the floor, unless it is on the screen already.
   * @param {Spot[]} spots
   * @param {{ width: number, height: number }} frame
   */
  #draw(spots, frame) {
    const before = this.#drawn;
    const version = JSON.stringify([frame, spots]);
    const isResized =
      before !== null &&
      (before.frame.width !== frame.width || before.frame.height !== frame.height);
    this.root.classList.toggle("resized", isResized); // no gliding while the window is dragged
    if (before?.version === version) return before;
    const room = frame.width / (rootFontSize() * WIDTH_IN_REM);
    const scale = scaleFor(Math.max(room, this.leastRoom));
    const layout = layOutPlan(spots, frame, scale);
    this.#drawn = { version, frame, scale, layout };
    const { width, height, outline, aside, zones } = layout;
    setAttributes(this.root, { width, height, viewBox: `0 0 ${width} ${height}` });
    this.floor.replaceChildren(
      ...(outline ? [svg("rect", { class: "outline", ...outline })] : []),
      ...(aside ? [drawLabel(aside, "aside")] : []),
      ...zones.map((zone) => this.#drawZone(zone, scale)),
    );
    return this.#drawn;
  }

  /**
   * Shades the zones by how many people are in them; with their names, which say it as a number.
   * @param {Figure[]} people
   * @param {PlanLayout} layout
   * @param {Scale} scale
   */
  #drawCrowds(people, { width, zones }, scale) {
    const counts = countBySpot(people);
    const nodes = this.floor.querySelectorAll(".zone");
    const labels = zones.flatMap((zone, index) => {
      const { spot } = zone;
      const count = counts.get(spot.key) ?? 0;
      const step = crowdStep(count) || null;
      const title = spot.title ?? spot.location;
      setAttribute(nodes[index], "data-crowd", step);
      setText(nodes[index].children[0], step ? `${title}: ${peopleText(count)}` : title);
      return drawNames({ ...zone, name: nameLabel(zone, width, scale, count) }, step);
    });
    this.names.replaceChildren(...labels);
  }

  /**
   * @param {Zone} zone
   * @param {Scale} scale
   */
  #drawZone({ spot, center, points }, scale) {
    const { choose } = this;
    return svg(
      "g",
      {
        class: `zone ${spot.state ?? ""} ${choose ? "open" : ""}`,
        "data-spot": spot.key,
        ...(choose && { onclick: () => choose(spot) }),
      },
      svg("title", {}, spot.title ?? spot.location),
      svg("polygon", { points: pointList(points) }),
      svg("circle", {
        class: "beacon",
        cx: center.x,
        cy: center.y,
        r: Math.max(1.5, scale.unit * 0.14),
      }),
    );
  }

  /**
   * @param {Point[]} points
   * @param {Scale} scale
   */
  #drawTrail(points, scale) {
    const line = pointList(points);
    if (line === this.#trailDrawn) return;
    this.#trailDrawn = line;
    const dots = points.map((point, index) =>
      svg("circle", {
        cx: point.x,
        cy: point.y,
        r: scale.unit * 0.22,
        opacity: 0.35 + (0.65 * (index + 1)) / points.length,
      }),
    );
    this.trail.replaceChildren(
      ...(points.length > 1 ? [svg("polyline", { points: line })] : []),
      ...dots,
    );
  }
}

/** @param {Point[]} points */
const pointList = (points) =>
  points.map((point) => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join(" ");

/**
 * @param {Zone} zone
 * @param {number | null} crowd how crowded it is
 */
function drawNames({ spot, name, note }, crowd) {
  const state = spot.state ?? "";
  return [
    ...(name ? [drawLabel(name, `name ${crowd ? `crowd-${crowd}` : ""} ${state}`, "middle")] : []),
    ...(note ? [drawLabel(note, `note ${state}`, "middle")] : []),
  ];
}

/**
 * @param {Label} label
 * @param {string} name its class
 * @param {"middle" | null} [anchor]
 */
const drawLabel = ({ text, x, y, px }, name, anchor = null) =>
  svg("text", { class: name, x, y, "font-size": px, "text-anchor": anchor }, text);

/** A gap in the coverage is striped as well as red. */
function hatch() {
  const pattern = svg(
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
  );
  return svg("defs", {}, pattern);
}
