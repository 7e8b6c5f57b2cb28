// Log-in: name and password, or a token, become a session, which lives in a cookie that no script
// sees. The token of a wall link stands behind the `#`, which browsers send to nobody.
import { $, buttonById, inputById, setText } from "../page/dom.js";
import { linkedToken, nextAddress } from "../rules/access/next_address.js";

const AGAIN_SECONDS = 5;

takeLink();
window.addEventListener("hashchange", takeLink); // pasted where this page is open already
document.body.dataset.started = "true"; // boot.js waits for it

/** Opens the link of the address, which then holds no token any more: nobody reads it there. */
function takeLink() {
  const token = linkedToken(location.hash);
  if (token === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  $("log-in").hidden = true;
  $("link").hidden = false;
  offerLink(token);
}

/**
 * Whom somebody sends a link must not be logged out by it unasked.
 * @param {string} token
 */
async function offerLink(token) {
  const answer = await fetch("/api/v1/session", { cache: "no-store" }).catch(() => null);
  const session = answer?.ok ? await answer.json().catch(() => null) : null;
  if (session?.kind !== "person") return openLink(token);
  setText($("link-says"), `You are logged in as ${session.name}. This link logs you out here.`);
  $("link-choice").hidden = false;
  buttonById("link-open").onclick = () => openLink(token);
}

/**
 * A wall screen has nobody who would try it again: what may pass is tried until it has.
 * @param {string} token
 */
async function openLink(token) {
  $("link-choice").hidden = true;
  const wrong = "This link is not valid any more: it was revoked, or has expired.";
  for (;;) {
    const { problem, again } = await logIn({ token }, wrong);
    const next = again ? ` It is tried again in ${waitText(again)}.` : "";
    setText($("link-says"), problem ? problem + next : "Opening the link…");
    if (!again) return;
    await new Promise((resolve) => setTimeout(resolve, again * 1000));
  }
}

$("log-in", HTMLFormElement).addEventListener("submit", async (event) => {
  event.preventDefault();
  const send = buttonById("send");
  send.disabled = true;
  const problem = await logInAsTyped();
  send.disabled = false;
  if (!problem) return;
  setText($("problem"), problem);
  $("problem").hidden = false;
  inputById(isByToken() ? "token" : "password").select();
});

buttonById("other-way").addEventListener("click", () => {
  const byToken = !isByToken();
  for (const [id, isShown] of [["by-name", !byToken], ["by-token", byToken]]) {
    const fields = $(String(id), HTMLFieldSetElement);
    fields.hidden = fields.disabled = !isShown;
  }
  $("problem").hidden = true;
  setText($("other-way"), byToken ? "Use name and password instead" : "Use a token instead");
  inputById(byToken ? "token" : "name").focus();
});

/** @param {number} seconds */
const waitText = (seconds) => (seconds < 90 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`);

const isByToken = () => !$("by-token").hidden;

async function logInAsTyped() {
  const typed = inputById("token").value.trim();
  const { problem, again } = isByToken()
    ? await logIn(
        { token: linkedToken(typed) ?? typed },
        "This token is not valid: it was revoked, or has expired.",
      )
    : await logIn(
        { name: inputById("name").value, password: inputById("password").value },
        "Wrong name or password.",
      );
  return again ? `${problem} Try again in ${waitText(again)}.` : problem;
}

/**
 * Logs in, and leads on; else tells what went wrong in words, and after how many seconds it may go
 * better.
 * @param {object} credentials
 * @param {string} wrong
 * @returns {Promise<{ problem: string, again?: number }>}
 */
async function logIn(credentials, wrong) {
  const body = JSON.stringify(credentials);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/api/v1/session", { method: "POST", headers, body }).catch(() => null);
  const data = await answer?.json().catch(() => null);
  if (answer?.ok) {
    location.replace(nextAddress(location.search, data?.level));
    return { problem: "" };
  }
  if (answer?.status === 401) return { problem: wrong };
  const problem = data?.detail || data?.error || "Waymark cannot be reached.";
  const again = Number(answer?.headers.get("Retry-After")) || AGAIN_SECONDS;
  if (answer?.status === 429) return { problem: "Too many attempts.", again };
  return answer && answer.status < 500 ? { problem } : { problem, again };
}
