-- Writes the counter, unless a higher fencing number has been seen.
-- KEYS[1] counter, KEYS[2] the highest number seen, ARGV[1] fencing number, ARGV[2] value.
-- Returns 1 if written, else 0.
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(seen) > tonumber(ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 1
