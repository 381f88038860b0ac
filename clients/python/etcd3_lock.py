#!/usr/bin/python3
"""python-etcd3's Lock. Its TTL is in whole seconds."""
import math
from importlib.metadata import version
from urllib.parse import unquote, urlsplit

import etcd3
import grpc

from adapter import serve

# gRPC refuses them without TLS; the token is in the metadata of each request, too.
grpc.metadata_call_credentials = lambda *_: None


class Client:
    def __init__(self, hello):
        url = urlsplit(hello["stores"]["etcd"])
        login = {"user": unquote(url.username), "password": unquote(url.password)} if url.username else {}
        self.etcd = etcd3.client(url.hostname, url.port or 2379, **login)
        self.locks = {}

    def acquire(self, key, ttl, wait):
        lock = self.locks.setdefault(key, self.etcd.lock(key))
        lock.ttl = math.ceil(ttl)
        return "acquired" if lock.acquire(timeout=wait) else "taken"

    def release(self, key):
        return "released" if key in self.locks and self.locks[key].release() else "not_held"

    def renew(self, key, _ttl):
        if key not in self.locks:
            return "lost"
        try:
            self.locks[key].refresh()  # its answer is the server's; the library does not look at it
        except ValueError:  # "No lease associated with this lock"
            return "lost"
        return "renewed"

    def held(self, key):
        return key in self.locks and self.locks[key].is_acquired()

    def close(self):
        self.etcd.close()


ABOUT = {"name": "python-etcd3 Lock", "version": version("etcd3"), "store": "etcd",
         "traits": {"expiry": "ttl", "fencing": False, "reentrant": False, "renews": False, "waiting": "notify"}}
serve(ABOUT, Client)
