-- SET NX PX and the next fencing number in one step.
-- KEYS[1] lock, KEYS[2] the lock's fencing counter, ARGV[1] token, ARGV[2] TTL in milliseconds.
-- Returns the fencing number, nil if another client has the lock.
-- The counter must outlive every lease, or numbers would restart below one in use: each grant and
-- renewal keeps it for a day, or for twice the TTL if that is longer.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local number = redis.call('INCR', KEYS[2])
  redis.call('PEXPIRE', KEYS[2], math.max(86400000, 2 * ARGV[2]))
  return number
end
return nil
