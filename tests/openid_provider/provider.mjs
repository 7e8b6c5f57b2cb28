// A real provider of OpenID Connect with forms of its own: node provider.mjs MODULES SETTINGS
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, text] = process.argv.slice(2);
const { port, clients, people } = JSON.parse(text);
const file = createRequire(`${modules}/`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(file));

const provider = new Provider(`http://localhost:${port}`, {
  clients,
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  cookies: { keys: ["of a test"] },
  pkce: { required: () => true },
  // Whatever name is typed, with any password.
  findAccount: (_, name) => ({ accountId: name, claims: () => ({ sub: name, ...people[name] }) }),
});
provider.listen(port, "localhost");
