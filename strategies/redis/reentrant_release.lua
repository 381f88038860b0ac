-- Gives the lock back once (Redisson's RLock).
-- KEYS[1] lock (a hash: owner to count), ARGV[1] owner, ARGV[2] TTL in milliseconds,
-- ARGV[3] if there: the channel on which the lock's end is told.
-- Returns 1 if that freed it, 0 if the caller holds it still, nil if it is not the caller's.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[3] then
  -- Who may not publish has released it all the same: the others wait for the TTL.
  redis.pcall('PUBLISH', ARGV[3], 'released')
end
return 1
