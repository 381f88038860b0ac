-- A lock that is granted first come, first served.
-- KEYS[1] lock: the holder's token. KEYS[2] queue: tokens by place.
-- KEYS[3] liveness: the time until which each waiter counts as alive.
-- KEYS[4] numbers: the last place and the last fencing number.
-- Each waiter blocks on its own list, KEYS[1]:wake:<token>.
-- ARGV[1] command, ARGV[2] token, ARGV[3] how long a heartbeat is valid, and for 'ask' ARGV[4] TTL,
-- both in milliseconds, and ARGV[5] '1' to join the queue if the lock is taken.
--   ask      {1, fencing number} if granted, else {0, waiters before it}; also a heartbeat
--   release  1 if freed, 0 if the caller does not hold it
--   leave    removes the caller from the queue and releases its lock
-- Each step is O(log n) at most, and there are at most kSteps.
local kSteps = 16
local lock, queue, liveness, numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local verb, token, alive_for = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Numbers must outlive every lease and every wait, or they would restart below one in use: each use
-- and renewal keeps them for a day, or for twice the TTL if that is longer.
local function next_number(kind, ttl)
  local number = redis.call('HINCRBY', numbers, kind, 1)
  redis.call('PEXPIRE', numbers, math.max(86400000, 2 * ttl))
  return number
end

local function wake_list(waiter)
  return lock .. ':wake:' .. waiter
end

local function forget(waiter)
  redis.call('ZREM', queue, waiter)
  redis.call('HDEL', liveness, waiter)
end

-- The first live waiter; removes dead ones before it. False without waiters; nil after kSteps dead
-- ones: the next request continues.
local function first_alive()
  for _ = 1, kSteps do
    local waiter = redis.call('ZRANGE', queue, 0, 0)[1]
    if not waiter then return false end
    if tonumber(redis.call('HGET', liveness, waiter) or 0) >= now then return waiter end
    forget(waiter)
  end
  return nil
end

-- The waiter must confirm its grant by 'ask' while its heartbeat is valid.
local function grant(waiter)
  forget(waiter)
  redis.call('SET', lock, waiter, 'PX', alive_for)
  redis.call('RPUSH', wake_list(waiter), '1')
  redis.call('PEXPIRE', wake_list(waiter), alive_for)
end

local function take(ttl)
  forget(token)
  redis.call('DEL', wake_list(token))
  redis.call('SET', lock, token, 'PX', ttl)
  return {1, next_number('fencing', ttl)}
end

local function ask(ttl, may_wait)
  local holder = redis.call('GET', lock)
  if holder == token then return take(ttl) end
  local queued = redis.call('ZSCORE', queue, token)
  if queued then redis.call('HSET', liveness, token, now + alive_for) end
  if not holder then
    local first = first_alive()
    if first == false or first == token then return take(ttl) end
    if first then grant(first) end
  end
  if not may_wait then return {0, 0} end
  if not queued then redis.call('ZADD', queue, next_number('place', ttl), token) end
  local before = redis.call('ZRANK', queue, token)
  -- Waiters at the back send heartbeats less often.
  local until_next = alive_for * math.min(1 + math.floor(before / 32), 10)
  redis.call('HSET', liveness, token, now + until_next)
  -- The queue expires after its last waiter.
  for _, key in ipairs({queue, liveness}) do
    if redis.call('PTTL', key) < 2 * until_next then redis.call('PEXPIRE', key, 4 * until_next) end
  end
  return {0, before}
end

local function give_up_lock()
  if redis.call('GET', lock) ~= token then return 0 end
  redis.call('DEL', lock)
  local first = first_alive()
  if first then grant(first) end
  return 1
end

if verb == 'ask' then
  return ask(ARGV[4], ARGV[5] == '1')
elseif verb == 'release' then
  return give_up_lock()
end
forget(token)
redis.call('DEL', wake_list(token))
give_up_lock()
return 1
