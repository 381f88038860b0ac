CuratorFramework client = CuratorFrameworkFactory.newClient(url, {ttl_ms}, {ttl_ms}, new RetryOneTime(100));
client.start();
InterProcessMutex lock = new InterProcessMutex(client, name);
if (!lock.acquire({wait_ms}, TimeUnit.MILLISECONDS)) throw new TimeoutException(name);
try {
  work.run();  // a ConnectionStateListener that hears SUSPENDED must stop it
} finally {
  lock.release();
}
