config.setLockWatchdogTimeout({ttl_ms});
RLock lock = Redisson.create(config).getLock(name);
if (!lock.tryLock({wait_ms}, TimeUnit.MILLISECONDS)) throw new TimeoutException(name);
try {
  work.run();
} finally {
  lock.unlock();  // IllegalMonitorStateException: the lock was lost
}
