#!/usr/bin/python3
"""kazoo's Lock. A client has a session of its own; its timeout is the TTL, and kazoo keeps it alive."""
from urllib.parse import unquote

import kazoo
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, LockTimeout
from kazoo.security import make_digest_acl

from adapter import serve


class Client:
    def __init__(self, hello):
        login, _, hosts = hello["stores"]["zookeeper"].removeprefix("zk://").rpartition("@")
        user, _, password = (unquote(word) for word in login.partition(":"))
        rights = {"auth_data": [("digest", f"{user}:{password}")],
                  "default_acl": [make_digest_acl(user, password, all=True)]} if login else {}
        self.zookeeper = KazooClient(hosts, timeout=hello["ttl_ms"] / 1000, **rights)
        self.zookeeper.start()
        self.locks, self.waiting = {}, None

    def acquire(self, key, _ttl, wait):
        # "lockbench:<run>:<name>" becomes "/lockbench/<run>/<name>", where lockbench cleans up.
        self.waiting = self.locks.setdefault(key, self.zookeeper.Lock("/" + "/".join(key.split(":", 2))))
        try:
            got = self.waiting.acquire(blocking=wait > 0, timeout=wait or None)
        except LockTimeout:
            return "taken"
        return "acquired" if got else "taken"

    def cancel(self):
        self.waiting.cancel()

    def release(self, key):
        return "released" if key in self.locks and self.locks[key].release() else "not_held"

    def held(self, key):
        return key in self.locks and self.locks[key].is_acquired

    def close(self):
        self.zookeeper.stop()
        self.zookeeper.close()


ABOUT = {"name": "kazoo Lock", "version": kazoo.__version__, "store": "zookeeper",
         "traits": {"expiry": "session", "fencing": False, "reentrant": False, "renews": True, "waiting": "queue"}}
serve(ABOUT, Client, definite=(CancelledError,))
