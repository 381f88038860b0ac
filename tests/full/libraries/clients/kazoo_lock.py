"""Holds kazoo's Lock and prints what it did, as JSON.

Usage: kazoo_lock.py HOSTS USER PASSWORD LOCKS HOLDS SECONDS    each of LOCKS threads holds a lock of its own
"""
import json
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl


def connect():
    hosts, user, password = sys.argv[1:4]
    acl = [make_digest_acl(user, password, all=True)]
    client = KazooClient(hosts=hosts, auth_data=[("digest", f"{user}:{password}")], default_acl=acl)
    client.start(timeout=20)
    return client


def hold(path, holds, seconds, out):
    client = connect()
    lock = client.Lock(path, "me")
    for _ in range(holds):
        lock.acquire()
        begun = time.monotonic()
        time.sleep(seconds)
        out.append(time.monotonic() - begun)
        lock.release()
        time.sleep(seconds / 2)
    client.stop()


def main():
    locks, holds, seconds = int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
    held = []
    threads = [
        threading.Thread(target=hold, args=(f"/locks/{i}", holds, seconds, held)) for i in range(locks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"holds": len(held), "mean": sum(held) / len(held)}))


main()
