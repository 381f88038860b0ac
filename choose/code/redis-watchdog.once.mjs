const client = new Redis(url), redlock = new Redlock([client], { retryCount: 0 });
const renewal = { automaticExtensionThreshold: ({ttl_ms} * 2) / 3 };  // every third of the TTL
await redlock.using([name], {ttl_ms}, renewal, async (signal) => {  // ExecutionError: another client runs it: skip
  if (await client.exists(marker)) return;  // such as "job:2026-11-29"; best where the work writes
  await work(signal);  // signal.aborted: the lock is lost, so stop
  await client.set(marker, 1, 'EX', 7 * 86400);
});
