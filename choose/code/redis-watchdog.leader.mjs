const redlock = new Redlock([new Redis(url)], { retryDelay: 1000, retryCount: -1 });
const renewal = { automaticExtensionThreshold: ({ttl_ms} * 2) / 3 };  // every third of the TTL
await redlock.using([name], {ttl_ms}, renewal, async (signal) => {
  await work(signal);  // signal.aborted: another may lead, so stop
});
