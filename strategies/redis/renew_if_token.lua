-- Extends the lock only if the caller still holds it.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] TTL in milliseconds. Returns 1 if extended, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
