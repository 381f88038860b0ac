CuratorFramework client = CuratorFrameworkFactory.newClient(url, {ttl_ms}, {ttl_ms}, new RetryOneTime(100));
client.start();
InterProcessMutex lock = new InterProcessMutex(client, name);
if (!lock.acquire(0, TimeUnit.SECONDS)) return;  // another client runs it: skip
try {
  if (client.checkExists().forPath(marker) != null) return;  // such as "/done/job-2026-11-29"
  work.run();
  client.create().creatingParentsIfNeeded().forPath(marker);
} finally { lock.release(); }
