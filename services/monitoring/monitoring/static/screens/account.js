// Your account: change the password, log out everywhere.
import { $, buttonById, inputById, setText } from "../page/dom.js";
import { RequestFailed, request } from "../page/request.js";
import { API } from "../page/shell.js";
import { drawProblems, errorTexts } from "../panels/dialog.js";

/** What the API calls the fields. @type {Record<string, string>} */
const FIELDS = { old: "The old password", new: "The new password" };

/** @param {unknown} error */
function texts(error) {
  const named = error instanceof RequestFailed ? (error.problem?.errors ?? []) : [];
  if (!named.length) return errorTexts(error);
  return named.map(({ field = "", reason }) =>
    reason === "is not the password" ? "That is not your old password" : `${FIELDS[field] ?? field} ${reason}`,
  );
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} problems the id of their list
 * @param {() => Promise<unknown>} work
 */
async function run(button, problems, work) {
  button.disabled = true;
  $("done").hidden = true;
  try {
    await work();
    drawProblems($(problems), []);
  } catch (error) {
    drawProblems($(problems), texts(error));
  } finally {
    button.disabled = false;
  }
}

// Somebody who is here by a token has no password.
const form = document.getElementById("password");
if (form instanceof HTMLFormElement) {
  const old = inputById("old"),
    wanted = inputById("new");
  inputById("show").addEventListener("change", () => {
    for (const field of [old, wanted]) field.type = inputById("show").checked ? "text" : "password";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(buttonById("change"), "problems", async () => {
      const body = JSON.stringify({ old: old.value, new: wanted.value });
      const headers = { "Content-Type": "application/json" };
      await request(`${API}/session/password`, { method: "PUT", body, headers });
      form.reset();
      old.type = wanted.type = "password";
      setText($("done"), "Your password is changed. Your log-ins elsewhere have ended.");
      $("done").hidden = false;
      $("done").focus();
    });
  });
  buttonById("everywhere").addEventListener("click", () => {
    if (!confirm("Log out everywhere, also here?")) return;
    run(buttonById("everywhere"), "everywhere-problems", async () => {
      await request(`${API}/session/everywhere`, { method: "POST" });
      location.assign("/monitoring/login");
    });
  });
}
