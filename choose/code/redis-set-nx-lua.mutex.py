lock = redis.Redis.from_url(url).lock(name, timeout={ttl_s}, blocking_timeout={wait_s})
if not lock.acquire():
    raise TimeoutError(name)
try:
    work()
finally:
    lock.release()  # LockNotOwnedError: the work took longer than the lock lasts
