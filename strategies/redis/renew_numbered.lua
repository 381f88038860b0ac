-- Extends the lock only if the caller still holds it, and keeps its fencing numbers, which must
-- outlive every lease, as long as a grant does (see fenced_acquire.lua).
-- KEYS[1] lock, ARGV[1] token, ARGV[2] TTL in milliseconds. Returns 1 if extended, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
for _, numbers in ipairs({':fencing', ':numbers'}) do
  redis.call('PEXPIRE', KEYS[1] .. numbers, math.max(86400000, 2 * ARGV[2]))
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
