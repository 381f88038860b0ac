-- SET NX PX and the next fencing number in one step.
-- KEYS[1] lock, KEYS[2] the lock's fencing counter, ARGV[1] token, ARGV[2] TTL in milliseconds.
-- Returns the fencing number, nil if another client has the lock.
-- The counter has no TTL: it must outlive the memory of the resource, or numbers would begin again
-- below the highest that the resource has seen.
-- The number comes first: if it cannot be had, an error must not leave a lock that nobody holds.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return nil
end
local number = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return number
