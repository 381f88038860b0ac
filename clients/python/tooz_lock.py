#!/usr/bin/python3
"""tooz's locks. Usage: tooz_lock.py redis|memcached|etcd|zookeeper|postgres. A client has a coordinator of its own, whose
heart renews its locks. TTLs are in whole seconds."""
import math
import sys
import uuid
from importlib.metadata import version
from urllib.parse import urlsplit

import tooz
from kazoo.exceptions import LockTimeout
from tenacity import RetryError
from tooz import coordination

from adapter import serve
from tooz_logins import log_in

SCHEMES = {"redis": "redis", "memcached": "memcached", "etcd": "etcd3", "zookeeper": "zookeeper", "postgres": "postgresql"}
STORE = sys.argv[1] if len(sys.argv) > 1 else ""
if STORE not in SCHEMES:
    sys.exit(f'"{STORE}" is not a store of tooz; allowed: {", ".join(SCHEMES)}')


def url_for_tooz(hello):
    """Its URLs have the TTL, and the number of a Redis database, as options."""
    ttl = math.ceil(hello["ttl_ms"] / 1000)
    place = hello["stores"][STORE].partition("://")[2]
    options = {"timeout": ttl} if STORE == "zookeeper" else {"lock_timeout": ttl, "membership_timeout": ttl}
    if STORE == "postgres":
        return f"postgresql://{place}"
    if STORE == "redis":
        options["db"] = urlsplit(f"//{place}").path.strip("/") or 0
        place = place.partition("/")[0]
    return f"{SCHEMES[STORE]}://{place}?" + "&".join(f"{name}={value}" for name, value in options.items())


class Client:
    def __init__(self, hello):
        if STORE in ("redis", "memcached", "etcd"):
            log_in(STORE, hello["stores"][STORE])
        self.coordinator = coordination.get_coordinator(url_for_tooz(hello), uuid.uuid4().hex.encode())
        self.coordinator.start(start_heart=True)
        self.locks = {}

    def acquire(self, key, _ttl, wait):
        if key not in self.locks:
            self.locks[key] = self.coordinator.get_lock(key.encode())
        try:
            return "acquired" if self.locks[key].acquire(blocking=wait or False) else "taken"
        except (RetryError, LockTimeout):  # how memcached, postgres and zookeeper say that the wait is over
            return "taken"

    def release(self, key):
        return "released" if key in self.locks and self.locks[key].release() else "not_held"

    def renew(self, key, _ttl):
        if key not in self.locks:
            return "lost"
        if not hasattr(self.locks[key], "heartbeat"):
            return "unsupported"
        return "renewed" if self.locks[key].heartbeat() else "lost"

    def held(self, key):
        if key not in self.locks:
            return False
        try:
            return bool(self.locks[key].is_still_owner())
        except tooz.NotImplemented:
            return self.locks[key].acquired

    def close(self):
        self.coordinator.stop()


EXPIRY = {"zookeeper": "session", "postgres": "connection"}
WAITING = {"zookeeper": "queue", "etcd": "notify"}
ABOUT = {"name": f"tooz {SCHEMES[STORE]}", "version": version("tooz"), "store": STORE,
         "traits": {"expiry": EXPIRY.get(STORE, "ttl"), "fencing": False, "reentrant": False,
                    "renews": STORE != "postgres", "waiting": WAITING.get(STORE, "poll")}}
serve(ABOUT, Client)
