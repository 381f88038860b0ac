const redlock = new Redlock([new Redis(url)], { retryDelay: 100, retryCount: {wait_ms} / 100 });
const renewal = { automaticExtensionThreshold: ({ttl_ms} * 2) / 3 };  // every third of the TTL
await redlock.using([name], {ttl_ms}, renewal, async (signal) => {
  await work(signal);  // signal.aborted: the lock is lost, so stop
});
