-- Prolongs the lock only if it is the caller's.
-- KEYS[1] lock (a hash: owner to count), ARGV[1] owner, ARGV[2] TTL in milliseconds.
-- Returns 1 if prolonged, else 0.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
