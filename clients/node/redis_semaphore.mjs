#!/usr/bin/env node
// redis-semaphore's Mutex. It renews itself.
import Redis from "ioredis";
import { Mutex } from "redis-semaphore";
import { refused, serve, versionOf } from "./adapter.mjs";

class Client {
  constructor(hello) {
    this.redis = new Redis(hello.stores.redis);
    this.mutexes = new Map();
  }

  async acquire({ key, ttl_ms, wait_ms }) {
    const limit = wait_ms > 0 ? { acquireTimeout: wait_ms } : { acquireAttemptsLimit: 1 };
    // Without onLockLost a loss ends the process, as an unhandled rejection.
    const onLockLost = (error) => console.error(`${error.name}: ${error.message}`);
    const mutex = new Mutex(this.redis, key, { lockTimeout: ttl_ms, onLockLost, ...limit });
    if (!(await mutex.tryAcquire())) return "taken";
    this.mutexes.set(key, mutex);
    return { outcome: "acquired", token: mutex.identifier };
  }

  async release({ key }) {
    const mutex = this.mutexes.get(key);
    if (!mutex?.isAcquired) return "not_held";
    await mutex.release(); // does not tell whether the key was still its own
    return "released";
  }

  held({ key }) {
    return this.mutexes.get(key)?.isAcquired ?? false;
  }

  close() {
    for (const mutex of this.mutexes.values()) mutex.stopRefresh();
    this.redis.disconnect();
    return {};
  }
}

const traits = { expiry: "ttl", fencing: false, reentrant: false, renews: true, waiting: "poll" };
const about = { name: "redis-semaphore Mutex", version: await versionOf("redis-semaphore"), store: "redis", traits };
serve(about, (hello) => new Client(hello), refused);
