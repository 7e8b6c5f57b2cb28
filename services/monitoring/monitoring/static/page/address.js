// The state of a screen lives in its address: a link can be shared, and back works.
/** @typedef {Record<string, string | number | null | undefined>} Changes "" and null: without it */

/** @param {string} name */
export function parameter(name) {
  return new URLSearchParams(location.search).get(name) ?? "";
}

/**
 * The address of this screen with some parameters changed.
 * @param {Changes} changes
 */
export function addressWith(changes) {
  const wanted = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) wanted.delete(name);
    else wanted.set(name, String(value));
  }
  const query = wanted.toString();
  return location.pathname + (query ? `?${query}` : "");
}

/**
 * @param {Changes} changes
 * @param {{ replace?: boolean }} [options] `replace`: without a step in the browser's history
 */
export function changeAddress(changes, { replace = false } = {}) {
  const to = addressWith(changes);
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
}

/**
 * At the start: a field keeps what somebody typed before the scripts ran, else it shows what the
 * address says.
 * @param {HTMLInputElement} field
 * @param {string} name
 */
export function adopt(field, name) {
  if (field.value) changeAddress({ [name]: field.value }, { replace: true });
  field.value = parameter(name);
}
