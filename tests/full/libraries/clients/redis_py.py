"""Holds redis-py's Lock and prints what it did, as JSON.

Usage: redis_py.py URL LOCKS HOLDS SECONDS    each of LOCKS threads holds a lock of its own, one hold after the other
"""
import json
import sys
import threading
import time

import redis


def hold(url, name, holds, seconds, out):
    client = redis.Redis.from_url(url)
    for _ in range(holds):
        lock = client.lock(name, timeout=30)
        assert lock.acquire()
        begun = time.monotonic()
        time.sleep(seconds)
        out.append(time.monotonic() - begun)
        lock.release()
        time.sleep(seconds / 2)


def main():
    url, locks, holds, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    held = []
    threads = [
        threading.Thread(target=hold, args=(url, f"lock:{i}", holds, seconds, held)) for i in range(locks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"holds": len(held), "mean": sum(held) / len(held)}))


main()
