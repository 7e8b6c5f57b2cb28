// Draws people as labelled markers that glide. Freshness is a shape as well as a colour: filled,
// ringed, hollow.
/** @import { Marker, Scale } from "./marker_layout.js" */
import { keyed, setAttribute, setAttributes, setText, svg } from "../page/dom.js";

const STATES = /** @type {const} */ (["picked", "dimmed", "compact", "more", "gone"]);

/** What each marker on the screen shows now. @type {WeakMap<Element, Marker>} */
const shown = new WeakMap();

/**
 * Draws the markers; those that were there before glide to their new place.
 * @param {Element} layer
 * @param {Marker[]} markers
 * @param {Scale} scale
 * @param {(marker: Marker) => void} pick called with the marker that is clicked
 */
export function drawMarkers(layer, markers, scale, pick) {
  keyed(
    layer,
    markers,
    (marker) => marker.key,
    () => create(pick),
    (node, marker) => update(node, marker, scale),
    { reorder: false },
  );
}

/** @param {(marker: Marker) => void} pick */
function create(pick) {
  const node = svg(
    "g",
    { class: "marker" },
    svg("title"),
    svg("rect", { class: "reach" }),
    svg("rect", { class: "pill" }),
    svg("circle", { class: "glyph" }),
    svg("circle", { class: "core" }),
    svg("text"),
  );
  node.addEventListener("click", () => {
    const marker = shown.get(node);
    if (marker) pick(marker);
  });
  return node;
}

/**
 * @param {SVGElement} node
 * @param {Marker} marker
 * @param {Scale} scale
 */
function update(node, marker, scale) {
  const [title, reach, pill, glyph, core, text] = node.children;
  shown.set(node, marker);
  const states = STATES.filter((state) => marker[state]).join(" ");
  setAttribute(node, "class", `marker ${marker.fresh} ${states}`.trim());
  setAttribute(node, "data-staff", marker.more ? null : marker.key);
  node.style.transform = `translate(${marker.px.toFixed(1)}px, ${marker.py.toFixed(1)}px)`;
  setText(title, marker.title);
  setText(text, marker.text);
  const { height } = scale,
    half = height / 2,
    left = -marker.width / 2,
    isBare = marker.compact || marker.gone; // text alone
  setAttributes(pill, { x: left, y: -half, width: marker.width, height, rx: half });
  setAttributes(reach, {
    x: left - 4,
    y: -Math.max(half + 2, 12),
    width: marker.width + 8,
    height: Math.max(height + 4, 24),
  });
  setAttributes(glyph, { cx: half + left, cy: 0, r: scale.glyph * 1.1 });
  setAttributes(core, { cx: half + left, cy: 0, r: scale.glyph * 0.5 });
  setAttributes(text, {
    x: isBare ? 0 : half + scale.glyph + scale.gap + left,
    y: scale.text * 0.36,
    "font-size": scale.text,
    textLength: marker.textLength,
    lengthAdjust: marker.textLength && "spacingAndGlyphs",
    "text-anchor": isBare ? "middle" : "start",
  });
}
