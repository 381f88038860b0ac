config.setLockWatchdogTimeout({ttl_ms});
RedissonClient redisson = Redisson.create(config);
RBucket<String> done = redisson.getBucket(marker);  // such as "job:2026-11-29"; best where the work writes
if (!redisson.getLock(name).tryLock()) return;  // another client runs it: skip
try {
  if (!done.isExists()) work.run();
  done.set("done", 7, TimeUnit.DAYS);
} finally {
  redisson.getLock(name).unlock();
}
