-- Prolongs the lock only if it is still the caller's.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] TTL in milliseconds. Returns 1 if prolonged, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
