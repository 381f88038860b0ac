#!/usr/bin/python3
"""redis-py's Lock (redis.lock.Lock), with the settings that a client has by default."""
import redis
from redis.exceptions import LockError, ResponseError

from adapter import serve


class Client:
    def __init__(self, hello):
        self.redis = redis.Redis.from_url(hello["stores"]["redis"])
        self.locks = {}

    def acquire(self, key, ttl, wait):
        lock = self.locks.setdefault(key, self.redis.lock(key))
        lock.timeout = ttl
        if not lock.acquire(blocking=wait > 0, blocking_timeout=wait):
            return "taken"
        return {"outcome": "acquired", "token": lock.local.token.decode()}

    def release(self, key):
        if key not in self.locks:
            return "not_held"
        try:
            self.locks[key].release()
        except LockError:  # also LockNotOwnedError
            return "not_held"
        return "released"

    def renew(self, key, ttl):
        if key not in self.locks:
            return "lost"
        try:
            self.locks[key].extend(ttl, replace_ttl=True)
        except LockError:
            return "lost"
        return "renewed"

    def held(self, key):
        return key in self.locks and self.locks[key].owned()

    def close(self):
        self.redis.close()


ABOUT = {"name": "redis-py Lock", "version": redis.__version__, "store": "redis",
         "traits": {"expiry": "ttl", "fencing": False, "reentrant": False, "renews": False, "waiting": "poll"}}
serve(ABOUT, Client, definite=(ResponseError,))
