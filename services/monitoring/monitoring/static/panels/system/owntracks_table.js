// System's table of what OwnTracks sent; hidden where it is off.
import { $, el, keyed, setText } from "../../page/dom.js";
import { owntracksCounts } from "../../rules/system/owntracks_counts.js";

/** @param {Pick<ServiceReport, "owntracks">[]} services */
export function drawOwntracks(services) {
  const counts = owntracksCounts(services);
  $("owntracks").hidden = !counts.length;
  keyed(
    $("owntracks-counts", HTMLTableElement).tBodies[0],
    counts,
    (row) => row.what,
    () => el("tr", {}, el("th", { scope: "row" }), el("td", { class: "number" })),
    (node, { what, count }) => {
      const [title, amount] = node.children;
      setText(title, what);
      setText(amount, count.toLocaleString());
    },
  );
}
