-- A lock for one writer or several readers, each reader with its own TTL.
-- KEYS[1] lock: the writer's token. KEYS[1]:readers: the end of each reader's lease.
-- KEYS[1]:writers: the time until which each waiting writer keeps new readers out. Both in microseconds.
-- ARGV[1] token, ARGV[2] TTL in milliseconds, ARGV[3] command:
--   write    takes it alone. ARGV[4]: how long, in milliseconds, the caller keeps new readers out if
--            it has to wait; 0: not at all
--   read     shares it. As 'write', returns nil if granted, else the milliseconds after which to
--            ask again at the latest, -1 if unknown
--   release  1 if freed, 0 if the caller does not hold it
--   leave    the same, and the caller no longer keeps readers out
--   (none)   renews it: 1 if extended, 0 if the caller does not hold it
local lock, readers, writers = KEYS[1], KEYS[1] .. ':readers', KEYS[1] .. ':writers'
local token, ttl, verb = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function last_end(set)
  return redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')[2]
end

-- The milliseconds until the last of them ends; nil if there are none.
local function all_gone_in(set)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
  local last = last_end(set)
  return last and math.ceil((last - now) / 1000)
end

local function put(set, milliseconds)
  redis.call('ZADD', set, now + milliseconds * 1000, token)
  redis.call('PEXPIREAT', set, math.ceil(last_end(set) / 1000))
end

local function reads()
  local ends = redis.call('ZSCORE', readers, token)
  return ends and tonumber(ends) > now
end

local function write(keeps_out_for)
  local left = redis.call('PTTL', lock)
  if left == -2 then
    left = all_gone_in(readers)
    if not left then
      redis.call('SET', lock, token, 'PX', ttl)
      redis.call('ZREM', writers, token)
      return nil
    end
  end
  if tonumber(keeps_out_for) > 0 then put(writers, keeps_out_for) end
  return left
end

local function read()
  local left = redis.call('PTTL', lock)
  if left ~= -2 then return left end
  left = all_gone_in(writers)
  if not left then put(readers, ttl) end
  return left
end

local function release()
  if redis.call('GET', lock) == token then return redis.call('DEL', lock) end
  local held = reads() and 1 or 0
  redis.call('ZREM', readers, token)
  return held
end

local function renew()
  if redis.call('GET', lock) == token then return redis.call('PEXPIRE', lock, ttl) end
  if not reads() then return 0 end
  put(readers, ttl)
  return 1
end

if verb == 'write' then return write(ARGV[4]) end
if verb == 'read' then return read() end
if verb == 'leave' then redis.call('ZREM', writers, token) end
if verb then return release() end
return renew()
