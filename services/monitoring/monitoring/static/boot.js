// A file of the page that does not arrive must not leave a wall screen at "Loading…" for ever.
(() => {
  const AGAIN_MS = 5_000,
    LATEST_MS = 30_000;
  let planned = false;
  const again = () => {
    if (planned || document.body?.dataset.started) return;
    planned = true;
    const banner = document.getElementById("banner");
    if (banner) {
      banner.textContent = "A part of this page did not arrive. It is loaded again in 5 seconds.";
      banner.hidden = false;
    }
    setTimeout(() => location.reload(), AGAIN_MS);
  };
  addEventListener(
    "error",
    (event) => event.target.matches?.("script, link[rel='stylesheet']") && again(),
    true,
  );
  setTimeout(again, LATEST_MS);
})();
