// Directory: which beacons are there? The list, the inbox of unknown ones, the import, the silent ones.
import { $, adopt, el, go, keyed, parameter, setAttribute, setText } from "./dom.js";
import { openEditor, openImport } from "./editor.js";
import { API, behindGateway, tell } from "./shell.js";
import { silent } from "./silent.js";
import { Source } from "./source.js";
import {
  Level,
  compare,
  duration,
  isUnknown,
  levelOrder,
  levelText,
  macText,
  updateTime,
} from "./words.js";

// An ingest service learns of another one's edit within 2 s, and the gateway takes turns.
const ELSEWHERE_MS = 2500;

const beacons = new Source(`${API}/beacons`, 30, draw); // straight from the API: an edit shows at once
const unknown = new Source(`${API}/beacons/unknown`, 15, draw);
const coverage = new Source("/monitoring/api/coverage", 15, draw);

async function changed(text) {
  setText($("done"), text);
  $("done").hidden = false;
  const read = () => Promise.all([beacons.refresh(), unknown.refresh()]);
  setTimeout(read, ELSEWHERE_MS);
  await read();
}

const all = () => beacons.data?.data ?? [];

function draw() {
  tell(beacons, unknown);
  const ready = Boolean(beacons.data);
  $("skeleton").hidden = ready || Boolean(beacons.failure);
  if (ready)
    setText(
      $("summary"),
      `${all().length} beacons on ${
        new Set(
          all()
            .filter((one) => !isUnknown(one.level))
            .map((one) => one.level),
        ).size
      } levels`,
    );
  drawInbox(unknown.data?.data ?? []);
  drawSilent();
  if (ready) drawList();
}

function drawInbox(found) {
  $("inbox").hidden = !unknown.data;
  setText($("inbox-count"), String(found.length));
  $("inbox-empty").hidden = found.length > 0;
  keyed(
    $("unknown"),
    found,
    (one) => one.mac,
    (one) =>
      el(
        "li",
        {},
        el("span", { class: "mac" }),
        el("span"),
        el("span", { class: "quiet" }),
        el(
          "button",
          {
            type: "button",
            class: "edit",
            disabled: !behindGateway,
            onclick: (event) =>
              openEditor(
                { mac: one.mac, level: "", location: "", x: null, y: null },
                { past: true, all: all(), opener: event.currentTarget, changed },
              ),
          },
          "Assign",
        ),
      ),
    (row, one) => {
      setText(row.children[0], macText(one.mac));
      const staff = (one.staff ?? []).map(String).sort(compare);
      setText(
        row.children[1],
        `heard ${one.count === 1 ? "once" : `${one.count.toLocaleString()} times`} by staff ${staff.slice(0, 4).join(", ")}${staff.length > 4 ? ` and ${staff.length - 4} more` : ""}`,
      );
      setText(row.children[2], `last ${duration(Math.max(0, unknown.now() - one.last_heard))} ago`);
      setAttribute(row.children[2], "title", new Date(one.last_heard * 1000).toLocaleString());
      setAttribute(row.children[3], "aria-label", `Assign ${macText(one.mac)}`);
    },
  );
}

function drawSilent() {
  const found = coverage.data ? silent(coverage.data.data, coverage.now()) : [];
  $("silent").hidden = found.length === 0;
  setText($("silent-count"), String(found.length));
  keyed(
    $("silent-list"),
    found,
    (one) => `${one.level} ${one.location}`,
    () => el("li", {}, el("strong"), el("span"), el("time", { class: "quiet" })),
    (row, one) => {
      setText(row.children[0], `${one.location}, ${levelText(one.level)}`);
      setText(
        row.children[1],
        `${one.macs.map(macText).join(", ")}: staff passed ${one.passed.join(" and ")} since`,
      );
      if (one.last_visited === null) setText(row.children[2], "never heard");
      else
        updateTime(
          row.children[2],
          one.last_visited,
          `last heard ${duration(coverage.now() - one.last_visited)} ago`,
        );
    },
  );
}

function drawList() {
  const wanted = parameter("q").trim().toLowerCase();
  const levels = [...new Set(all().map((one) => String(one.level)))].sort(levelOrder);
  keyed(
    $("level"),
    ["", ...levels],
    (name) => name,
    (name) => el("option", { value: name }, name ? Level(name) : "All levels"),
    () => {},
  );
  $("level").value = levels.includes(parameter("level")) ? parameter("level") : "";
  const text = (one) =>
    `${one.mac} ${macText(one.mac)} ${levelText(one.level)} ${one.location}`.toLowerCase();
  const shown = all().filter(
    (one) =>
      (!$("level").value || String(one.level) === $("level").value) && text(one).includes(wanted),
  );
  shown.sort(
    (one, other) =>
      levelOrder(one.level, other.level) ||
      compare(one.location, other.location) ||
      compare(one.mac, other.mac),
  );
  keyed(
    $("beacons").tBodies[0],
    shown,
    (one) => one.mac,
    () =>
      el(
        "tr",
        {},
        el("td"),
        el("td"),
        el("td", { class: "mac" }),
        el("td", { class: "number" }),
        el(
          "td",
          { class: "actions" },
          el("button", { type: "button", class: "edit", disabled: !behindGateway }, "Edit"),
        ),
      ),
    (row, one) => {
      setText(row.children[0], isUnknown(one.level) ? "unknown" : String(one.level));
      setText(row.children[1], one.location);
      setText(row.children[2], macText(one.mac));
      setText(row.children[3], Number.isFinite(one.x) ? `${one.x}, ${one.y}` : "–");
      const button = row.children[4].firstChild;
      setAttribute(button, "aria-label", `Edit ${macText(one.mac)}, ${one.location}`);
      button.onclick = () => openEditor(one, { all: all(), opener: button, changed });
    },
  );
  $("none").hidden = shown.length > 0;
  setText(
    $("none"),
    all().length
      ? "No beacon matches."
      : "The directory is empty: add a beacon, or import a CSV file.",
  );
}

adopt($("search"), "q");
$("search").addEventListener("input", (event) => {
  go({ q: event.target.value }, { replace: true });
  draw();
});
$("level").addEventListener("change", (event) => {
  go({ level: event.target.value });
  draw();
});
$("add").addEventListener("click", (event) =>
  openEditor(
    { mac: "", level: "", location: "", x: null, y: null },
    { all: all(), opener: event.currentTarget, changed },
  ),
);
$("import").addEventListener("click", (event) =>
  openImport({ opener: event.currentTarget, changed }),
);
for (const id of ["add", "import"]) $(id).disabled = !behindGateway;
window.addEventListener("popstate", () => {
  $("search").value = parameter("q");
  draw();
});
beacons.start();
unknown.start();
coverage.start();
