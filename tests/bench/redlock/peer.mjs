// One client of node-redlock 5, uncontended: peer.mjs SECONDS PORT... prints sections per second and the
// acquire p50 in microseconds.
import Redis from "ioredis";
import redlock from "redlock";

const Redlock = redlock.default ?? redlock;
const [seconds, ...ports] = process.argv.slice(2).map(Number);
const nodes = ports.map((port) => new Redis(port, "127.0.0.1"));
const lock = new Redlock(nodes, { retryCount: 0, automaticExtensionThreshold: 0 });
const now = () => process.hrtime.bigint();
const taken = [];

async function section() {
  const begin = now();
  const held = await lock.acquire(["lockbench:peer"], 10000);
  taken.push(Number(now() - begin) / 1000);
  await held.release();
}

const warm = now() + 500_000_000n;
while (now() < warm) await section();
taken.length = 0;
const begin = now();
const end = begin + BigInt(Math.round(seconds * 1e9));
while (now() < end) await section();
const elapsed = Number(now() - begin) / 1e9;
taken.sort((a, b) => a - b);
console.log((taken.length / elapsed).toFixed(0), taken[taken.length >> 1].toFixed(1));
for (const node of nodes) node.disconnect();
