// The people whom the office has named: all screens call them so. They are read beside what is seen
// first, and at a modest pace; while they cannot be read, ids are shown.
import { Names } from "../rules/people/names.js";
import { el } from "./dom.js";
import { API } from "./shell.js";
import { Source } from "./source.js";

const REFRESH_SECONDS = 60;

/** What people are called; nobody has a name before they were read. */
export let names = new Names([]);
/** `unread`: they cannot be. @type {"reading" | "unread" | "read"} */
export let namesState = "reading";

/**
 * Reads them from now on.
 * @param {() => void} changed called when there are others than before, or cannot be read
 */
export function readNames(changed) {
  /** @type {NamedPerson[] | null} */
  let shown = null;
  /** @type {Source<{ data: NamedPerson[] }>} */
  const people = new Source("/monitoring/api/people", REFRESH_SECONDS, ({ data, failure }) => {
    // More of them than are read for all pages at once are read for this page alone.
    if (!data && failure && people.url !== `${API}/people`) {
      people.url = `${API}/people`;
      return void people.refresh();
    }
    if (data ? data.data === shown : namesState === "unread") return;
    namesState = data ? "read" : "unread";
    if (!data) return changed();
    shown = data.data;
    names = new Names(data.data);
    for (const node of document.querySelectorAll("[data-called]")) write(node);
    changed();
  });
  return people.start();
}

/**
 * A node that says what somebody is called, with their id where they have a name, and follows it.
 * @template {Element} T
 * @param {T} node
 * @param {string | number} id
 */
export function callBy(node, id) {
  node.setAttribute("data-called", String(id));
  write(node);
  return node;
}

/** @param {Element} node */
function write(node) {
  const id = node.getAttribute("data-called") ?? "";
  const beside = names.idBeside(id);
  const small = beside ? [el("small", {}, ` ${beside}`)] : [];
  node.replaceChildren(names.called(id), ...small);
}
