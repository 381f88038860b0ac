"""Holds kazoo's Lock and prints what it did, as JSON.

Usage: kazoo_lock.py HOSTS USER PASSWORD hold LOCKS HOLDS SECONDS    each of LOCKS threads holds a lock of its own
       kazoo_lock.py HOSTS USER PASSWORD queue CLIENTS SECONDS       CLIENTS hold one lock, one after the other
"""
import json
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl


def connect():
    hosts, user, password = sys.argv[1:4]
    acl = [make_digest_acl(user, password, all=True), make_digest_acl("watcher", "hunter2", read=True)]
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


def run_queue(clients, seconds):
    """All are in the queue before the first one releases the lock; each reports how many are behind it."""
    held, waiting, guard = [], [], threading.Lock()

    def one():
        client = connect()
        lock = client.Lock("/locks/queue", "me")
        lock.acquire()
        while not held and len(lock.contenders()) < clients:
            time.sleep(0.02)
        begun = time.monotonic()
        time.sleep(seconds)
        with guard:
            waiting.append(len(lock.contenders()) - 1)
            held.append(time.monotonic() - begun)
        lock.release()
        client.stop()

    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"holds": len(held), "mean": sum(held) / len(held), "waiting": max(waiting)}))


def main():
    what = sys.argv[4]
    if what == "queue":
        run_queue(int(sys.argv[5]), float(sys.argv[6]))
        return
    locks, holds, seconds = int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7])
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
