-- Writes the value only if the key has not changed since it was read.
-- KEYS[1] key, ARGV[1] new value, ARGV[2] the value that was read; empty: there was no key.
-- Returns 1 if written, else 0.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
