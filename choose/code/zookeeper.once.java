CuratorFramework client = CuratorFrameworkFactory.newClient(url, {ttl_ms}, {ttl_ms}, new RetryOneTime(100));
client.start();
InterProcessMutex lock = new InterProcessMutex(client, name);
if (!lock.acquire(0, TimeUnit.SECONDS)) return;  // another client runs it: skip
if (client.checkExists().forPath(marker) == null) {  // such as "/done/job-2026-11-29"
  work.run();
  client.create().creatingParentsIfNeeded().forPath(marker);
}
lock.release();
