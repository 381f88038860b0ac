client = KazooClient(hosts=url, timeout={ttl_s})
client.start()
lock = client.Lock(name)
if lock.acquire(blocking=False):  # else another client runs it: skip
    try:
        if not client.exists(marker):  # such as "/done/job-2026-11-29"
            work()
            client.create(marker, makepath=True)
    finally:
        lock.release()
