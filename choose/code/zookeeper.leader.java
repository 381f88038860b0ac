CuratorFramework client = CuratorFrameworkFactory.newClient(url, {ttl_ms}, {ttl_ms}, new RetryOneTime(100));
client.start();
LeaderLatch latch = new LeaderLatch(client, name);
latch.addListener(new LeaderLatchListener() {
  public void isLeader() { work.run(); }
  public void notLeader() { stop.run(); }  // at once: another may lead
});
latch.start();
