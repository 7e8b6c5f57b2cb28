// Copying what a field holds.

/**
 * Without TLS, browsers have the clipboard only by the command of old.
 * @param {HTMLInputElement} field
 * @returns {Promise<boolean>} whether it is copied; else it is selected
 */
export async function copy(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return document.execCommand("copy");
  }
}
