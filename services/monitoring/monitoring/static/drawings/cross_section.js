// Draws the building from the side: all levels at once, the highest on top, for the wall screen.
// cross_section_layout.js says where everything stands.
/** @import { Crowd, CrossSectionLayout, Frame, Level, Strip } from "./cross_section_layout.js" */
/** @import { Figure, Marker, Scale } from "./marker_layout.js" */
import { keyed, setAttribute, setAttributes, setText, svg } from "../page/dom.js";
import { layOutCrossSection, scaleForCrowd, stackPeople } from "./cross_section_layout.js";
import { countPresent } from "./marker_layout.js";
import { drawMarkers } from "./markers.js";
import { scaleFor } from "./text_size.js";

export class CrossSection {
  /** @type {[Level[], Figure[], string] | null} */
  #last = null;
  /** @type {{ version: string, scale: Scale, layout: CrossSectionLayout, counts: Element[] } | null} */
  #drawn = null;

  /**
   * @param {HTMLElement} host
   * @param {{ isWall?: boolean, pick?: (marker: Marker) => void, choose?: (level: string) => void }} [options]
   *   `pick` is called with a marker that is clicked, `choose` with a level
   */
  constructor(host, { isWall = false, pick = () => {}, choose = () => {} } = {}) {
    this.host = host;
    this.isWall = isWall;
    this.pick = pick;
    this.choose = choose;
    this.building = svg("g", { class: "floor" });
    this.crowds = svg("g", { class: "crowds" });
    this.markers = svg("g", { class: "markers" });
    const layers = [this.building, this.crowds, this.markers];
    this.root = svg("svg", { class: "section", role: "img" }, ...layers);
    host.append(this.root);
    new ResizeObserver(() => this.#last && this.show(...this.#last)).observe(host);
  }

  /**
   * @param {Level[]} levels the lowest first
   * @param {Figure[]} people
   * @param {string} label
   */
  show(levels, people, label) {
    this.#last = [levels, people, label];
    setAttribute(this.root, "aria-label", label);
    const { clientWidth: width, clientHeight: height } = this.host;
    const frame = { width, height, isWall: this.isWall };
    if (!frame.width) return;
    const { scale, layout, counts } = this.#draw(levels, countPresent(people), frame);
    const stacks = layout.strips.map((strip, index) => {
      const here = people.filter((person) => person.level === strip.level);
      setText(counts[index], String(countPresent(here) || "–"));
      const { markers, crowds } = stackPeople(here, strip, layout, scale);
      return { markers, crowds: crowds.map((crowd) => ({ ...crowd, ...strip })) };
    });
    const crowded = stacks.flatMap(({ crowds }) => crowds);
    keyed(this.crowds, crowded, (crowd) => crowd.key, createCrowd, (node, crowd) => {
      updateCrowd(node, crowd, scale);
    });
    const markers = stacks.flatMap(({ markers: level }) => level);
    drawMarkers(this.markers, markers, scale, this.pick);
  }

  /**
   * Draws the building, unless it is on the screen already.
   * @param {Level[]} levels
   * @param {number} people
   * @param {Frame} frame
   */
  #draw(levels, people, frame) {
    const before = this.#drawn;
    const scale = scaleForCrowd(levels, people, frame, scaleFor);
    const version = JSON.stringify([frame, levels, scale.unit]);
    const isNew = before?.version !== version;
    this.root.classList.toggle("resized", isNew && before !== null); // no gliding then
    if (before && !isNew) return before;
    const layout = layOutCrossSection(levels, frame, scale);
    const counts = layout.strips.map((strip) => drawCount(strip, scale));
    this.#drawn = { version, scale, layout, counts };
    const { width, height, strips } = layout;
    setAttributes(this.root, { width, height, viewBox: `0 0 ${width} ${height}` });
    const shapes = strips.map((strip, index) => {
      const shape = drawStrip(strip, counts[index], layout, scale);
      shape.addEventListener("click", () => this.choose(strip.level));
      return shape;
    });
    this.building.replaceChildren(...shapes);
    return this.#drawn;
  }
}

const createCrowd = () => svg("g", {}, svg("rect"), svg("text", { "text-anchor": "middle" }));

/**
 * @param {Element} node
 * @param {Crowd & Strip} crowd
 * @param {Scale} scale
 */
function updateCrowd(node, { step, count, left, right, x, y, top, ground }, { small }) {
  const [shade, text] = node.children;
  setAttribute(node, "data-crowd", step);
  const size = { width: Math.max(0, right - left - 2), height: Math.max(0, ground - top - 2) };
  setAttributes(shade, { x: left + 1, y: top + 1, ...size });
  setAttributes(text, { x, y, "font-size": small });
  setText(text, String(count ?? ""));
}

/**
 * @param {Strip} strip
 * @param {Scale} scale
 */
const drawCount = ({ ground }, { unit, small }) =>
  svg("text", { class: "count", x: unit * 0.3, y: ground + unit * 0.05, "font-size": small });

/**
 * @param {Strip} strip
 * @param {Element} count
 * @param {CrossSectionLayout} layout
 * @param {Scale} scale
 */
function drawStrip({ level, title, top, ground, ticks, names }, count, layout, { unit, small }) {
  const { width, left, stripHeight } = layout;
  return svg(
    "g",
    { class: "strip", "data-level": level },
    svg("rect", {
      class: "air",
      x: left,
      y: top + 1,
      width: Math.max(0, width - left),
      height: stripHeight - 4,
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
      x1: left + unit * 0.5,
      x2: width - unit * 0.5,
      y1: ground,
      y2: ground,
    }),
    ...ticks.map((x) =>
      svg("line", {
        class: "tick",
        x1: x,
        x2: x,
        y1: ground - unit * 0.25,
        y2: ground + unit * 0.25,
      }),
    ),
    ...names.map(({ text, x }) =>
      svg(
        "text",
        { class: "name", x, y: ground + unit, "font-size": small, "text-anchor": "middle" },
        text,
      ),
    ),
  );
}
