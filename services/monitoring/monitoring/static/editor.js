// The dialogs of the directory: one beacon, and the import of a file.
import { $, el, keyed, setText } from "./dom.js";
import { API } from "./shell.js";
import { ask } from "./source.js";
import { compare, macText } from "./words.js";

const MAX_ROWS = 50; // of the preview

function show(dialog, opener) {
  dialog.addEventListener("close", () => opener?.focus(), { once: true });
  dialog.showModal();
}

function problems(error) {
  const errors = error.body?.errors ?? [];
  return errors.length
    ? errors.map(
        (one) =>
          `${one.line ? `line ${one.line}: ` : ""}${one.field ? `${one.field} ` : ""}${one.reason}`,
      )
    : [error.message];
}

function complain(list, texts) {
  list.hidden = texts.length === 0;
  list.replaceChildren(...texts.slice(0, MAX_ROWS).map((text) => el("li", {}, text)));
  if (texts.length > MAX_ROWS) list.append(el("li", {}, `and ${texts.length - MAX_ROWS} more`));
}

// One beacon. `past`: it is an unknown one, whose past detections may be corrected.
export function openEditor(beacon, { past = false, all, opener, changed }) {
  const dialog = $("editor"),
    fields = dialog.querySelector("form").elements;
  const isNew = !beacon.mac;
  setText(
    $("editor-title"),
    isNew ? "Add a beacon" : past ? `Assign ${macText(beacon.mac)}` : `Edit ${macText(beacon.mac)}`,
  );
  fields.mac.value = beacon.mac ? macText(beacon.mac) : "";
  fields.mac.readOnly = !isNew;
  for (const name of ["level", "location", "x", "y"]) fields[name].value = beacon[name] ?? "";
  fields.past.checked = past;
  $("past").hidden = isNew;
  $("delete").hidden = isNew || past;
  const suggest = (id, values) =>
    keyed(
      $(id),
      [...new Set(values)].sort(compare),
      (value) => value,
      (value) => el("option", { value }),
      () => {},
    );
  suggest(
    "known-levels",
    all.map((one) => String(one.level)),
  );
  suggest(
    "known-locations",
    all.map((one) => one.location),
  );
  complain($("editor-errors"), []);

  const run = async (work, text) => {
    const buttons = dialog.querySelectorAll("button");
    buttons.forEach((button) => (button.disabled = true));
    try {
      await work();
      dialog.close();
      await changed(text);
    } catch (error) {
      complain($("editor-errors"), problems(error));
    } finally {
      buttons.forEach((button) => (button.disabled = false));
    }
  };
  const number = (text) => (text.trim() === "" ? null : Number(text));
  const mac = () => fields.mac.value.replaceAll(/[:\s-]/g, "").toUpperCase();
  dialog.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    const body = JSON.stringify({
      level: fields.level.value.trim(),
      location: fields.location.value.trim(),
      x: number(fields.x.value),
      y: number(fields.y.value),
    });
    const url = `${API}/beacons/${encodeURIComponent(mac())}${fields.past.checked ? "?correct_past=1" : ""}`;
    run(
      () => ask(url, { method: "PUT", body, headers: { "Content-Type": "application/json" } }),
      `Saved ${macText(mac())}${fields.past.checked ? ", past detections are corrected" : ""}.`,
    );
  };
  $("delete").onclick = () => {
    if (
      confirm(
        `Delete ${macText(beacon.mac)}, ${beacon.location}? Its past detections keep their place.`,
      )
    ) {
      run(
        () => ask(`${API}/beacons/${beacon.mac}`, { method: "DELETE" }),
        `Deleted ${macText(beacon.mac)}.`,
      );
    }
  };
  $("cancel").onclick = () => dialog.close();
  show(dialog, opener);
  (isNew ? fields.mac : fields.level).focus();
}

// A CSV file: checked first (`dry_run`), then imported as a whole.
export function openImport({ opener, changed }) {
  const dialog = $("importer"),
    file = $("file"),
    run = $("run-import");
  let text = "";
  file.value = "";
  run.disabled = true;
  setText($("preview"), "");
  complain($("import-errors"), []);
  const send = (query) =>
    ask(`${API}/beacons/import${query}`, {
      method: "POST",
      body: text,
      headers: { "Content-Type": "text/csv" },
    });
  file.onchange = async () => {
    run.disabled = true;
    if (!file.files.length) return;
    setText($("preview"), "Checking…");
    try {
      text = await file.files[0].text();
      const { body } = await send("?dry_run=1");
      const errors = problems({ body, message: "" }).filter(Boolean);
      complain($("import-errors"), errors);
      setText(
        $("preview"),
        errors.length
          ? "Nothing is imported before these lines are right:"
          : summary(body, "would be"),
      );
      run.disabled = errors.length > 0;
    } catch (error) {
      complain($("import-errors"), problems(error));
      setText($("preview"), "This file cannot be imported:");
    }
  };
  run.onclick = async () => {
    run.disabled = true;
    try {
      const { body } = await send("");
      dialog.close();
      await changed(`Imported ${file.files[0].name}: ${summary(body, "")}`);
    } catch (error) {
      complain($("import-errors"), problems(error));
      setText($("preview"), "This file was not imported:");
    }
  };
  $("cancel-import").onclick = () => dialog.close();
  show(dialog, opener);
}

function summary(body, verb) {
  const count = (name) => body?.counts?.[name] ?? body?.[name] ?? 0;
  return `${count("added")} ${verb} added, ${count("changed")} ${verb} changed, ${count("unchanged")} unchanged.`.replaceAll(
    "  ",
    " ",
  );
}
