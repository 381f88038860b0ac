#!/usr/bin/env node
// The lock of a BullMQ job, without the work: a key is a queue with one job, and whoever gets the job holds the lock. The
// worker's own renewal belongs to its processor, so here the caller renews.
import { randomUUID } from "node:crypto";
import { Queue, Worker } from "bullmq";
import Redis from "ioredis";
import { refused, serve, versionOf } from "./adapter.mjs";

class Lock {
  constructor(connection, key, ttl_ms) {
    this.queue = new Queue("lock", { connection, prefix: key });
    // A job whose lock has ended goes to another worker after one to two stalled intervals. drainDelay: seconds of one wait.
    const times = { lockDuration: ttl_ms, stalledInterval: ttl_ms, drainDelay: 1 };
    this.worker = new Worker("lock", null, { connection, prefix: key, autorun: false, ...times });
    for (const one of [this.queue, this.worker]) one.on("error", (error) => console.error(error.message));
    this.started = this.worker.startStalledCheckTimer();
  }

  /** Nothing happens if the job is there. */
  offer() {
    return this.queue.add("lock", {}, { jobId: "lock", removeOnComplete: true, removeOnFail: true });
  }
}

class Client {
  constructor(hello) {
    this.redis = new Redis(hello.stores.redis, { maxRetriesPerRequest: null }); // BullMQ demands that
    this.locks = new Map();
  }

  async acquire({ key, ttl_ms, wait_ms }) {
    if (!this.locks.has(key)) this.locks.set(key, new Lock(this.redis, key, ttl_ms));
    const lock = this.locks.get(key);
    await lock.started;
    const token = randomUUID();
    const end = Date.now() + wait_ms;
    do {
      await lock.offer();
      const job = await lock.worker.getNextJob(token, { block: wait_ms > 0 });
      if (job) {
        lock.held = { job, token };
        return { outcome: "acquired", token };
      }
    } while (Date.now() < end);
    return "taken";
  }

  async release({ key }) {
    const lock = this.locks.get(key);
    if (!lock?.held) return "not_held";
    const { job, token } = lock.held;
    try {
      await job.moveToCompleted(null, token, false);
    } catch (error) {
      if (/Missing (lock|key)|Lock mismatch|not in the active state/i.test(error.message)) return "not_held";
      throw error;
    }
    lock.held = undefined;
    await lock.offer(); // for those that wait
    return "released";
  }

  async renew({ key, ttl_ms }) {
    const held = this.locks.get(key)?.held;
    return held && Number(await held.job.extendLock(held.token, ttl_ms)) === 1 ? "renewed" : "lost";
  }

  async close() {
    for (const lock of this.locks.values()) await Promise.all([lock.worker.close(true), lock.queue.close()]);
    this.redis.disconnect();
    return {};
  }
}

const traits = { expiry: "ttl", fencing: false, reentrant: false, renews: false, waiting: "notify" };
const about = { name: "BullMQ job", version: await versionOf("bullmq"), store: "redis", traits };
serve(about, (hello) => new Client(hello), refused);
