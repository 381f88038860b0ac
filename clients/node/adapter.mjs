// What the Node adapters share: reads requests, gives them to their clients, and writes the answers.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

/**
 * `about`: the answer to hello. `connect(hello)` makes a client; its methods take a request and return, or resolve to, an
 * outcome or a whole answer. `definite(error)`: the store has done nothing.
 */
export function serve(about, connect, definite = () => false) {
  console.log = console.error; // what a library prints must not stand among the answers
  const clients = new Map();
  let hello;

  function answer(id, what) {
    const whole = typeof what === "string" ? { outcome: what } : typeof what === "boolean" ? { held: what } : what;
    process.stdout.write(`${JSON.stringify({ id, ...whole })}\n`);
  }

  async function carryOut(request) {
    for (const end = performance.now() + (request.ms ?? 0); performance.now() < end; ); // "work" keeps the event loop busy
    if (request.do === "work") return {};
    if (request.do === "echo" || (request.do === "close" && !clients.has(request.client))) return {};
    if (!clients.has(request.client)) clients.set(request.client, connect(hello));
    const client = clients.get(request.client);
    if (request.do === "close") clients.delete(request.client);
    return client[request.do] ? client[request.do](request) : "unsupported";
  }

  createInterface({ input: process.stdin })
    .on("line", async (line) => {
      const request = JSON.parse(line);
      if (request.do === "hello") {
        hello = request;
        answer(request.id, about);
      } else if (request.do === "cancel") {
        answer(request.id, "unsupported"); // none of these libraries can
      } else {
        try {
          answer(request.id, await carryOut(request));
        } catch (error) {
          const reason = `${error.name}: ${error.message}`.slice(0, 300);
          answer(request.id, { outcome: "failed", definite: !clients.has(request.client) || definite(error), reason });
        }
      }
    })
    .on("close", () => process.exit(0));
}

/** Redis answered that it refuses the command. */
export const refused = (error) => error.name === "ReplyError";

/** The version of an installed package. */
export async function versionOf(name) {
  const file = await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url));
  return JSON.parse(file).version.replace(/^v/, "");
}
