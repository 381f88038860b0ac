-- A semaphore: a set of permits, each with its own TTL (Redisson's RPermitExpirableSemaphore, npm's
-- redis-semaphore), by the server's clock.
-- KEYS[1] permits: the end of each holder's permit in microseconds.
-- ARGV[1] token, ARGV[2] TTL in milliseconds, ARGV[3] command:
--   acquire  ARGV[4]: the number of permits. nil if granted, else the milliseconds until the first
--            permit ends
--   release  1 if freed, 0 if the caller holds none
--   (none)   renews it: 1 if extended, 0 if the caller holds none
local permits, token, ttl, verb = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function put()
  redis.call('ZADD', permits, now + ttl * 1000, token)
  local last = redis.call('ZREVRANGE', permits, 0, 0, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', permits, math.ceil(last / 1000))
end

redis.call('ZREMRANGEBYSCORE', permits, '-inf', now)
if verb == 'release' then return redis.call('ZREM', permits, token) end
if verb == 'acquire' then
  local last = tonumber(ARGV[4]) - 1
  if redis.call('ZRANGE', permits, last, last)[1] then
    local first = redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')[2]
    return math.ceil((first - now) / 1000)
  end
  put()
  return nil
end
if not redis.call('ZSCORE', permits, token) then return 0 end
put()
return 1
