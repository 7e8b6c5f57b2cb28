// Log-in: name and password become a session, which lives in a cookie that no script sees.
import { $, buttonById, inputById, setText } from "../page/dom.js";
import { nextAddress } from "../rules/next_address.js";

document.body.dataset.started = "true"; // boot.js waits for it

$("log-in", HTMLFormElement).addEventListener("submit", async (event) => {
  event.preventDefault();
  const send = buttonById("send");
  send.disabled = true;
  const problem = await logIn();
  if (!problem) return location.replace(nextAddress(location.search));
  send.disabled = false;
  setText($("problem"), problem);
  $("problem").hidden = false;
  inputById("password").select();
});

/** What went wrong, in words; nothing when it went well. */
async function logIn() {
  const given = { name: inputById("name").value, password: inputById("password").value };
  const body = JSON.stringify(given);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/api/v1/session", { method: "POST", headers, body }).catch(() => null);
  if (answer?.ok) return "";
  if (answer?.status === 401) return "Wrong name or password.";
  const wait = answer?.status === 429 && Number(answer.headers.get("Retry-After"));
  if (wait) return `Too many attempts. Try again in ${wait < 90 ? `${wait} s` : `${Math.ceil(wait / 60)} min`}.`;
  const said = await answer?.json().catch(() => null);
  return said?.detail || said?.error || "Waymark cannot be reached. Try again.";
}
