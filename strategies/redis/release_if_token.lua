-- Releases the lock only if the caller still holds it (redis.io, "Distributed Locks with Redis").
-- KEYS[1] lock, ARGV[1] token. Returns 1 if released, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
