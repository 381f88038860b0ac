client = redis.Redis.from_url(url)
lock = client.lock(name, timeout={ttl_s})
if lock.acquire(blocking=False):  # else another client runs it: skip
    try:
        if not client.exists(marker):  # such as "job:2026-11-29"; best where the work writes
            work()
            client.set(marker, 1, ex=7 * 86400)
    finally:
        lock.release()
