// A part of the page that does not arrive, or that fails, must not leave a wall screen at "Loading…"
// or at an old picture for ever.
(() => {
  const RELOAD_MS = 5_000,
    LATEST_MS = 30_000,
    FAILED_MS = 60_000;
  let isPlanned = false,
    hasFailed = false;
  const planReload = () => {
    if (isPlanned || hasFailed || document.body?.dataset.started) return;
    isPlanned = true;
    const banner = document.getElementById("banner");
    const says = document.getElementById("banner-says") ?? banner;
    if (banner && says) {
      banner.hidden = false;
      says.textContent = "A part of this page did not arrive. It is loaded again in 5 seconds.";
    }
    setTimeout(() => location.reload(), RELOAD_MS);
  };
  // Whoever types here loses nothing by a reload that they did not ask for.
  const isUsed = () =>
    document.querySelector("dialog[open]") || document.activeElement?.matches("input, textarea");
  const fail = () => {
    const box = document.getElementById("failed");
    if (hasFailed || !box) return;
    hasFailed = true;
    document.body.dataset.failed = "true";
    box.hidden = false;
    document.getElementById("reload")?.addEventListener("click", () => location.reload());
    document.getElementById("pulse")?.toggleAttribute("hidden", true); // its clock would go on
    for (const node of document.querySelectorAll("#summary, #state"))
      if (node.textContent === "Loading…") node.textContent = "Not loaded";
    setInterval(() => isUsed() || location.reload(), FAILED_MS);
  };
  const isPart = (/** @type {EventTarget | null} */ target) =>
    target instanceof Element && target.matches("script, link[rel='stylesheet']");
  const hear = (/** @type {ErrorEvent} */ event) => {
    if (isPart(event.target)) planReload();
    else if (event.error) fail(); // without one it is a note of the browser
  };
  addEventListener("error", hear, true);
  addEventListener("unhandledrejection", fail);
  setTimeout(planReload, LATEST_MS);
})();
