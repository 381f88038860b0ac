config.setLockWatchdogTimeout({ttl_ms});
RLock lock = Redisson.create(config).getLock(name);
lock.lock();  // returns when this client leads
work.run();  // lock.isHeldByCurrentThread() each second: if false, stop to lead
