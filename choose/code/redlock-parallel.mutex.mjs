const redlock = new Redlock(urls.map((url) => new Redis(url)), { retryDelay: 100, retryCount: {wait_ms} / 100 });
const lock = await redlock.acquire([name], {ttl_ms});
try {
  await work();  // for at most {ttl_ms} ms
} finally {
  await lock.release();
}
