-- Reads the counter and registers the reader's fencing number (Martin Kleppmann, "How to do
-- distributed locking").
-- KEYS[1] counter, KEYS[2] the highest number seen, ARGV[1] fencing number. Returns the counter's
-- value, 0 if there is none yet; nil if a higher number has been seen.
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(seen) > tonumber(ARGV[1]) then
  return nil
end
redis.call('SET', KEYS[2], ARGV[1])
return redis.call('GET', KEYS[1]) or '0'
