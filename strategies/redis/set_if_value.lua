-- Sets a number only if nobody has changed it since it was read; a missing key counts as 0.
-- KEYS[1] number, ARGV[1] as read, ARGV[2] new. Returns 1 if set, else 0.
if (redis.call('GET', KEYS[1]) or '0') == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
  return 1
end
return 0
