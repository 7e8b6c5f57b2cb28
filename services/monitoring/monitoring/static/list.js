// The list of Live: searched, sorted, and calm while somebody looks at it.
import { $, el, keyed, parameter, setAttribute, setText } from "./dom.js";
import {
  Level,
  compare,
  heardText,
  levelOrder,
  levelText,
  placeText,
  spotText,
  updateTime,
} from "./words.js";

export const SORTS = {
  name: (one, other) => one.order - other.order,
  heard: (one, other) => other.heardAt - one.heardAt || one.order - other.order,
  level: (one, other) =>
    levelOrder(one.level, other.level) ||
    compare(spotText(one), spotText(other)) ||
    one.order - other.order,
};

// Everybody on a level ("": anywhere) whom the search finds; `open` changes what is shown.
export function drawList(staff, all, level, open) {
  const wanted = parameter("q").trim().toLowerCase();
  const matches = (one) =>
    !wanted || `staff ${one.id} ${placeText(one)} ${one.mac}`.toLowerCase().includes(wanted);
  const shown = all.filter((one) => (!level || one.level === level) && matches(one));
  shown.sort(
    (one, other) => one.gone - other.gone || (SORTS[parameter("sort")] ?? SORTS.name)(one, other),
  );
  const list = $("people");
  // What a hand or an eye is on does not move away.
  const busy = list.matches(":hover") || list.contains(document.activeElement);
  if (staff.data || staff.failure)
    list.querySelectorAll(".skeleton").forEach((row) => row.remove());
  if (staff.data)
    keyed(
      list,
      shown,
      (one) => one.id,
      (one) => createRow(one, open),
      (row, one) => updateRow(row, one, staff.failure),
      { reorder: !busy || !list.nodes },
    );
  if (!staff.data) {
    $("nobody").hidden = !staff.failure;
    setText($("nobody"), "Positions cannot be told now.");
    return;
  }
  $("nobody").hidden = shown.length > 0 || all.length === 0;
  if (!$("nobody").hidden)
    setText(
      $("nobody"),
      wanted
        ? `Nobody matches “${parameter("q").trim()}”${level ? ` on ${levelText(level)}` : ""}.`
        : `Nobody was heard on ${levelText(level)}.`,
    );
}

function createRow(one, open) {
  return el(
    "li",
    {},
    el(
      "button",
      {
        type: "button",
        class: "row",
        onclick: (event) =>
          open({
            person: event.currentTarget.getAttribute("aria-pressed") === "true" ? "" : one.id,
          }),
      },
      el("span", { class: "mark", "aria-hidden": "true" }),
      el("span", { class: "who" }),
      el("span", { class: "where" }),
      el("span", { class: "floor-name" }),
      el("time", { class: "heard" }),
    ),
  );
}

function updateRow(row, one, blind) {
  const button = row.firstChild;
  const [mark, who, where, floorName, heard] = button.children;
  setAttribute(button, "data-staff", one.id);
  setAttribute(button, "aria-pressed", one.picked);
  setAttribute(button, "class", `row ${one.gone ? "gone" : one.fresh}`);
  setAttribute(mark, "class", `mark ${one.fresh}`);
  setText(who, `Staff ${one.id}`);
  setText(where, spotText(one));
  setText(floorName, Level(one.level));
  updateTime(heard, one.heardAt, heardText(one.heardAt, one.age, blind));
}
