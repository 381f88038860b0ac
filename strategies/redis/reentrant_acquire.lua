-- Takes the lock, or takes it again if the caller holds it (Redisson's RLock).
-- KEYS[1] lock (a hash: owner to count), ARGV[1] owner, ARGV[2] TTL in milliseconds.
-- Returns nil if granted, else the rest of the holder's TTL in milliseconds.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], 1)
elseif redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
else
  return redis.call('PTTL', KEYS[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return nil
