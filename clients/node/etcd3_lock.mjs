#!/usr/bin/env node
// etcd3's Lock. It keeps its lease alive and does not wait. TTLs are in whole seconds.
import { Etcd3, EtcdLockFailedError } from "etcd3";
import { serve, versionOf } from "./adapter.mjs";

class Client {
  constructor(hello) {
    const [login, places] = hello.stores.etcd.replace(/^[a-z]+:\/\//, "").match(/^(?:(.*)@)?(.*)$/).slice(1);
    const [username, password] = (login ?? "").split(":").map(decodeURIComponent);
    const hosts = places.split(",").map((place) => `http://${place}`);
    this.etcd = new Etcd3({ hosts, auth: login ? { username, password } : undefined });
    this.locks = new Map();
  }

  async acquire({ key, ttl_ms }) {
    const lock = this.etcd.lock(key).ttl(Math.ceil(ttl_ms / 1000));
    try {
      await lock.acquire();
    } catch (error) {
      if (error instanceof EtcdLockFailedError) return "taken";
      // The library goes on to renew the lease; a release ends that.
      if (!this.locks.has(key)) this.locks.set(key, lock);
      throw error;
    }
    this.locks.set(key, lock);
    return "acquired";
  }

  async release({ key }) {
    if (!this.locks.has(key)) return "not_held";
    await this.locks.get(key).release(); // does not tell whether the lease had ended
    this.locks.delete(key);
    return "released";
  }

  close() {
    this.etcd.close();
    return {};
  }
}

const traits = { expiry: "session", fencing: false, reentrant: false, renews: true, waiting: "none" };
const about = { name: "etcd3 Lock", version: await versionOf("etcd3"), store: "etcd", traits };
serve(about, (hello) => new Client(hello));
