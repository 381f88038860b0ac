-- Extends the lock only if the caller holds it.
-- KEYS[1] lock (a hash: owner to count), ARGV[1] owner, ARGV[2] TTL in milliseconds.
-- Returns 1 if extended, else 0.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
