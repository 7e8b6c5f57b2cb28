// Making and updating nodes. Text is always text: nothing here parses markup.

/**
 * @typedef {string | number | boolean | null | undefined} Value `false` and null: without the attribute
 * @typedef {Record<string, Value | ((event: any) => void)>} Attributes `onclick` and such are listeners
 * @typedef {Node | string | null | undefined} Child
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * The element of an id, which must be there.
 * @template {Element} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [kind] what it must be: HTMLInputElement ...
 * @returns {T}
 */
export function $(id, kind) {
  const node = document.getElementById(id);
  if (!node || !(node instanceof (kind ?? HTMLElement))) throw new Error(`no such element: #${id}`);
  return /** @type {any} */ (node);
}

/** @param {string} id */
export const inputById = (id) => $(id, HTMLInputElement);
/** @param {string} id */
export const selectById = (id) => $(id, HTMLSelectElement);
/** @param {string} id */
export const buttonById = (id) => $(id, HTMLButtonElement);

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export const el = (tag, attributes = {}, ...children) =>
  furnished(document.createElement(tag), attributes, children);

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {SVGElementTagNameMap[K]}
 */
export const svg = (tag, attributes = {}, ...children) =>
  furnished(document.createElementNS(SVG, tag), attributes, children);

/**
 * @template {Element} T
 * @param {T} node
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function furnished(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else setAttribute(node, name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * @param {Element} node
 * @param {string} name
 * @param {Value} value
 */
export function setAttribute(node, name, value) {
  const text = value === false || value === null || value === undefined ? null : String(value);
  if (text === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/**
 * @param {Element} node
 * @param {Record<string, Value>} values
 */
export function setAttributes(node, values) {
  for (const [name, value] of Object.entries(values)) setAttribute(node, name, value);
}

/**
 * The width of a bar.
 * @param {Element} node
 * @param {number} percent
 */
export function setWidth(node, percent) {
  if (node instanceof HTMLElement) node.style.width = `${percent}%`;
}

/**
 * Scrolls a box, and nothing around it, until a node within is seen.
 * @param {Element} box
 * @param {Element} node
 */
export function showWithin(box, node) {
  const outer = box.getBoundingClientRect(),
    inner = node.getBoundingClientRect();
  if (inner.top < outer.top) box.scrollTop += inner.top - outer.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}

/** The nodes that `keyed` made, by the key of their item. @type {WeakMap<Node, Map<string, any>>} */
const nodesOf = new WeakMap();

/** @param {Node} parent */
export const isKeyed = (parent) => nodesOf.has(parent);

/**
 * Makes the children of `parent` those of `items`, one node a key. A node that stays is neither
 * made again nor moved without need, so a refresh keeps focus, hover and transitions.
 * @template T
 * @template {Element} N
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => N} create
 * @param {(node: N, item: T) => void} update
 * @param {{ reorder?: boolean }} [options]
 */
export function keyed(parent, items, key, create, update, { reorder = true } = {}) {
  /** @type {Map<string, N>} */
  const old = nodesOf.get(parent) ?? new Map();
  /** @type {Map<string, N>} */
  const nodes = new Map();
  for (const item of items) {
    const name = key(item);
    const node = old.get(name) ?? create(item);
    update(node, item);
    nodes.set(name, node);
    if (!node.parentNode) parent.append(node);
  }
  for (const [name, node] of old) if (!nodes.has(name)) node.remove();
  if (reorder) {
    /** @type {Node | null} */
    let before = parent.firstChild;
    for (const node of nodes.values()) {
      if (node === before) before = node.nextSibling;
      else parent.insertBefore(node, before);
    }
  }
  nodesOf.set(parent, nodes);
}
