// A file of the page that does not arrive must not leave a wall screen at "Loading…" for ever.
(() => {
  const RELOAD_MS = 5_000,
    LATEST_MS = 30_000;
  let isPlanned = false;
  const planReload = () => {
    if (isPlanned || document.body?.dataset.started) return;
    isPlanned = true;
    const banner = document.getElementById("banner");
    if (banner) {
      banner.textContent = "A part of this page did not arrive. It is loaded again in 5 seconds.";
      banner.hidden = false;
    }
    setTimeout(() => location.reload(), RELOAD_MS);
  };
  const isPart = (/** @type {EventTarget | null} */ target) =>
    target instanceof Element && target.matches("script, link[rel='stylesheet']");
  addEventListener("error", (event) => isPart(event.target) && planReload(), true);
  setTimeout(planReload, LATEST_MS);
})();
