// What the viewer's browser keeps. One that keeps nothing forgets it with the page.

/** @type {Map<string, string>} */
const kept = new Map();

/**
 * @param {string} key
 * @returns {string | null}
 */
export function remembered(key) {
  try {
    return localStorage.getItem(key) ?? kept.get(key) ?? null;
  } catch {
    return kept.get(key) ?? null;
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function remember(key, value) {
  kept.set(key, value);
  try {
    localStorage.setItem(key, value);
  } catch {
    // forbidden, or full
  }
}
