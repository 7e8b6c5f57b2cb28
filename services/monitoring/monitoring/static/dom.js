// Making and updating nodes. Text is always text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  make(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  make(document.createElementNS(SVG, tag), attributes, children);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  const text = value === false || value === null || value === undefined ? null : String(value);
  if (text === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

// Makes the children of `parent` those of `items`, one node a key: a node that stays is neither made
// anew nor moved without need, so that a refresh keeps focus, hover and transitions.
export function keyed(parent, items, key, create, update, { reorder = true } = {}) {
  const old = parent.nodes ?? new Map();
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
    let before = parent.firstChild;
    for (const node of nodes.values()) {
      if (node === before) before = node.nextSibling;
      else parent.insertBefore(node, before);
    }
  }
  parent.nodes = nodes;
}

// The state of a screen lives in its address: a link can be shared, and back works.
export function parameter(name) {
  return new URLSearchParams(location.search).get(name) ?? "";
}

export function address(changes) {
  const wanted = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) wanted.delete(name);
    else wanted.set(name, value);
  }
  const query = wanted.toString();
  return location.pathname + (query ? `?${query}` : "");
}

export function go(changes, { replace = false } = {}) {
  const to = address(changes);
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
}

// At the start: what somebody typed before the scripts ran goes on, else what the address says.
export function adopt(field, name) {
  if (field.value) go({ [name]: field.value }, { replace: true });
  field.value = parameter(name);
}
