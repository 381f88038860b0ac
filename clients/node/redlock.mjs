#!/usr/bin/env node
// redlock 5, or its fork: redlock.mjs [redlock | @sesamecare-oss/redlock]. hello names the nodes. The settings are the
// package's own, except for the number of tries, which follows from how long a client waits.
import Redis from "ioredis";
import { serve, versionOf } from "./adapter.mjs";

const PACKAGES = ["redlock", "@sesamecare-oss/redlock"];
const name = process.argv[2] ?? PACKAGES[0];
if (!PACKAGES.includes(name)) {
  console.error(`"${name}" is not a package of Redlock; allowed: ${PACKAGES.join(", ")}`);
  process.exit(1);
}
const imported = await import(name);
const Redlock = imported.Redlock ?? imported.default.default ?? imported.default;

/** Whether a majority of the nodes answered "locked" at the last try. Nothing if a node has not answered. */
async function majorityIsLocked(error) {
  if (!error.attempts?.length) return undefined;
  const unanswered = new Promise((resolve) => setTimeout(resolve, 0));
  const votes = await Promise.race([error.attempts.at(-1), unanswered]);
  if (!votes) return undefined;
  return [...votes.votesAgainst.values()].filter((one) => one.name === "ResourceLockedError").length >= votes.quorumSize;
}

class Client {
  constructor(hello) {
    this.nodes = [hello.stores.redis].flat().map((url) => new Redis(url));
    const db = this.nodes[0].options.db; // the fork selects it in its scripts
    this.redlock = new Redlock(this.nodes, { db });
    this.locks = new Map();
  }

  async acquire({ key, ttl_ms, wait_ms }) {
    const retryCount = Math.ceil(wait_ms / this.redlock.settings.retryDelay);
    try {
      const lock = await this.redlock.acquire([key], ttl_ms, { retryCount });
      this.locks.set(key, lock);
      return { outcome: "acquired", token: lock.value, valid_ms: Math.max(0, lock.expiration - Date.now()) };
    } catch (error) {
      if (await majorityIsLocked(error)) return "taken";
      throw error;
    }
  }

  async release({ key }) {
    const lock = this.locks.get(key);
    if (!lock) return "not_held";
    try {
      await lock.release();
    } catch (error) {
      if (await majorityIsLocked(error)) return "not_held"; // the lock's key is gone, or another client's
      throw error;
    }
    return "released";
  }

  async renew({ key, ttl_ms }) {
    const lock = this.locks.get(key);
    if (!lock) return "lost";
    try {
      this.locks.set(key, await lock.extend(ttl_ms));
    } catch (error) {
      if (error.attempts?.length === 0 || (await majorityIsLocked(error))) return "lost";
      throw error;
    }
    return "renewed";
  }

  held({ key }) {
    return (this.locks.get(key)?.expiration ?? 0) > Date.now();
  }

  close() {
    for (const node of this.nodes) node.disconnect();
    return {};
  }
}

const traits = { expiry: "ttl", fencing: false, reentrant: false, renews: false, waiting: "poll", quorum: true };
serve({ name, version: await versionOf(name), store: "redis", traits }, (hello) => new Client(hello));
