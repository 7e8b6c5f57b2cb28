// People as labelled markers that glide. Freshness is shape as well as colour: filled, ringed, hollow.
import { keyed, setAttribute, setText, svg } from "./dom.js";

const measure = document.createElement("canvas").getContext("2d");
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

// Sizes in CSS px; they follow the root font, which grows on a wall screen, and the room there is.
export function sizes(room = 1) {
  const unit = rem() * Math.min(1.6, Math.max(1, room));
  return {
    text: unit * 0.8,
    small: unit * 0.7,
    height: unit * 1.5,
    glyph: unit * 0.3,
    gap: unit * 0.2,
    unit,
  };
}

export function textWidth(text, px, weight = 400) {
  measure.font = `${weight} ${px}px system-ui, sans-serif`;
  return measure.measureText(text).width;
}

export const shorten = (text, length) =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;

export function markerWidth(text, size) {
  return textWidth(text, size.text, 600) + size.height + size.unit * 0.2;
}

function create(item, pick) {
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
  node.addEventListener("click", () => pick(node.item));
  return node;
}

function update(node, item, size) {
  const [title, reach, pill, glyph, core, text] = node.children;
  node.item = item;
  setAttribute(
    node,
    "class",
    `marker ${item.fresh}${item.picked ? " picked" : ""}${item.more ? " more" : ""}`,
  );
  setAttribute(node, "data-staff", item.more ? null : item.key);
  node.style.transform = `translate(${item.px.toFixed(1)}px, ${item.py.toFixed(1)}px)`;
  setText(title, item.title);
  setText(text, item.text);
  const { height } = size,
    half = height / 2;
  const set = (shape, values) =>
    Object.entries(values).forEach(([name, value]) => setAttribute(shape, name, value));
  set(pill, { x: -item.width / 2, y: -half, width: item.width, height, rx: half });
  set(reach, {
    x: -item.width / 2 - 4,
    y: -Math.max(half + 2, 12),
    width: item.width + 8,
    height: Math.max(height + 4, 24),
  });
  set(glyph, { cx: half - item.width / 2, cy: 0, r: size.glyph * 1.1 });
  set(core, { cx: half - item.width / 2, cy: 0, r: size.glyph * 0.5 });
  set(text, {
    x: item.more ? 0 : half + size.glyph + size.gap - item.width / 2,
    y: size.text * 0.36,
    "font-size": size.text,
    "text-anchor": item.more ? "middle" : "start",
  });
}

// Draws `items` {key, px, py, text, width, fresh, title, picked, more}.
export function drawMarkers(layer, items, size, pick) {
  keyed(
    layer,
    items,
    (item) => item.key,
    (item) => create(item, pick),
    (node, item) => update(node, item, size),
    { reorder: false },
  );
}

// The item of one person; who is many in one spot is counted in one marker instead.
export function markerOf(person, size, at) {
  const text = shorten(person.id, 8);
  return {
    key: person.id,
    person,
    text,
    width: markerWidth(text, size),
    fresh: person.fresh,
    title: person.title,
    picked: person.picked,
    ...at,
  };
}

export function moreOf(key, crowd, size, at) {
  const text = `+${crowd.length}`;
  const names = crowd.map((person) => person.id);
  const fresh = ["now", "recent", "stale"].find((state) =>
    crowd.some((person) => person.fresh === state),
  );
  return {
    key: `more ${key}`,
    more: crowd,
    text,
    width: markerWidth(text, size) - size.height * 0.5,
    fresh,
    title: `${crowd.length} more: ${names.join(", ")}`,
    ...at,
  };
}
