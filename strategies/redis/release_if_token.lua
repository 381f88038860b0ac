-- Frees the lock only if it is still the caller's (redis.io, "Distributed Locks with Redis").
-- KEYS[1] lock, ARGV[1] token. Returns 1 if freed, 0 if it is not the caller's.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
