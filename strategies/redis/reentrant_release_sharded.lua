-- reentrant_release for a server of a cluster, where PUBLISH would go to all servers.
-- KEYS[1] lock (a hash: owner to count), ARGV[1] owner, ARGV[2] TTL in milliseconds,
-- ARGV[3]: the sharded channel on which to announce that the lock is free.
-- Returns 1 if this freed the lock, 0 if the caller still holds it, nil if it did not hold it.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
-- pcall: without the permission to publish, the lock is still released; others wait for the TTL.
redis.pcall('SPUBLISH', ARGV[3], 'released')
return 1
