client = KazooClient(hosts=url, timeout={ttl_s})
client.start()
lock = client.Lock(name)
lock.acquire(timeout={wait_s})  # LockTimeout: not granted in time
try:
    work()  # a listener (client.add_listener) that hears SUSPENDED must stop it
finally:
    lock.release()
