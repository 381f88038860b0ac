// Holds the locks of a library from npm and prints what it did, as JSON: LOCKS clients hold a lock each, HOLDS times
// one after the other. Usage: locks.mjs semaphore|redlock|etcd3 LOCKS HOLDS SECONDS URL...
// For redlock the URLs are those of the quorum's nodes.
const [library, locks, holds, seconds, ...urls] = process.argv.slice(2);
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const held = [];
const closing = [];

async function redis(url) {
  const { default: Redis } = await import("ioredis");
  const client = new Redis(url);
  closing.push(() => client.disconnect());
  return client;
}

// Each returns a function that takes a lock and resolves to a function that releases it.
const libraries = {
  async semaphore() {
    const { Mutex } = await import("redis-semaphore");
    const client = await redis(urls[0]);
    return (name) => {
      const mutex = new Mutex(client, name, { lockTimeout: 30000, refreshInterval: 10000 });
      return async () => {
        await mutex.acquire();
        return () => mutex.release();
      };
    };
  },
  async redlock() {
    const imported = await import("redlock");
    const Redlock = imported.default.default ?? imported.default;
    const quorum = new Redlock(await Promise.all(urls.map(redis)), { automaticExtensionThreshold: 0 });
    return (name) => async () => {
      const lock = await quorum.acquire([`lock:${name}`], 30000);
      return () => lock.release();
    };
  },
  async etcd3() {
    const { Etcd3 } = await import("etcd3");
    const at = new URL(urls[0]);
    const auth = at.username ? { username: at.username, password: decodeURIComponent(at.password) } : undefined;
    const etcd = new Etcd3({ hosts: `http://${at.host}`, auth });
    closing.push(() => etcd.close());
    return (name) => async () => {
      const lock = await etcd.lock(`locks/${name}`).ttl(10).acquire();
      return () => lock.release();
    };
  },
};

async function work(take) {
  for (let i = 0; i < Number(holds); i += 1) {
    const release = await take();
    const begun = performance.now();
    await sleep(Number(seconds) * 1000);
    held.push((performance.now() - begun) / 1000);
    await release();
    await sleep((Number(seconds) * 1000) / 2);
  }
}

const lockOf = await libraries[library]();
await Promise.all([...Array(Number(locks)).keys()].map((number) => work(lockOf(String(number)))));
for (const close of closing) close();
console.log(JSON.stringify({ holds: held.length, mean: held.reduce((sum, one) => sum + one, 0) / held.length }));
