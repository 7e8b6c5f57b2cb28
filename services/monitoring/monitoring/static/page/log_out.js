// The button of who is logged in; the template has it only then.
import { request } from "./request.js";

/** Lets the button end the session; until now a click would have done nothing. */
export function offerLogOut() {
  const button = document.getElementById("log-out");
  button?.removeAttribute("disabled");
  button?.addEventListener("click", async () => {
    // Also where it fails: who is still logged in sees that there.
    await request("/api/v1/session", { method: "DELETE" }).catch(() => null);
    location.assign("/monitoring/login");
  });
}
