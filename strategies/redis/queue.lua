-- A lock that is granted first come, first served.
-- KEYS[1] lock: the holder's token. KEYS[2] queue: tokens by place.
-- KEYS[3] liveness: the time until which each waiter counts as alive, and its window.
-- KEYS[4] numbers: the last place and the last fencing number. They have no TTL: they must outlive
-- every wait and the memory of the resource, or they would begin again below one in use.
-- Each waiter blocks on its own list, KEYS[1]:wake:<token>.
-- ARGV[1] command, ARGV[2] token, and for 'ask' ARGV[3] window: how long a heartbeat is valid, and
-- how long the caller may take to confirm a grant, ARGV[4] TTL, both in milliseconds, and ARGV[5]
-- '1' to join the queue if the lock is taken. Each waiter states its own window, as it depends on
-- the waiter's distance to the server.
--   ask      {1, fencing number} if granted, else {0, waiters before it}; also a heartbeat
--   release  1 if freed, 0 if the caller does not hold it
--   leave    removes the caller from the queue and releases its lock
-- Each step is O(log n) at most, and there are at most kSteps.
local kSteps = 16
local lock, queue, liveness, numbers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local verb, token = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function next_number(kind)
  return redis.call('HINCRBY', numbers, kind, 1)
end

local function wake_list(waiter)
  return lock .. ':wake:' .. waiter
end

local function forget(waiter)
  redis.call('ZREM', queue, waiter)
  redis.call('HDEL', liveness, waiter)
end

local function keep_alive(milliseconds, window)
  redis.call('HSET', liveness, token, string.format('%d %d', now + milliseconds, window))
end

-- The time until which it counts as alive, and its window.
local function life_of(waiter)
  local ends, window = string.match(redis.call('HGET', liveness, waiter) or '', '(%d+) (%d+)')
  return tonumber(ends or 0), tonumber(window or 1)
end

-- The first live waiter; removes dead ones before it. False without waiters; nil after kSteps dead
-- ones: the next request continues.
local function first_alive()
  for _ = 1, kSteps do
    local waiter = redis.call('ZRANGE', queue, 0, 0)[1]
    if not waiter then return false end
    if life_of(waiter) >= now then return waiter end
    forget(waiter)
  end
  return nil
end

-- The waiter must confirm its grant by 'ask' within its window.
local function grant(waiter)
  local _, window = life_of(waiter)
  forget(waiter)
  redis.call('SET', lock, waiter, 'PX', window)
  redis.call('RPUSH', wake_list(waiter), '1')
  redis.call('PEXPIRE', wake_list(waiter), window)
end

-- The number comes first: if it cannot be had, an error must not leave a lock that nobody holds.
local function take(ttl)
  local number = next_number('fencing')
  forget(token)
  redis.call('DEL', wake_list(token))
  redis.call('SET', lock, token, 'PX', ttl)
  return {1, number}
end

local function ask(window, ttl, may_wait)
  local holder = redis.call('GET', lock)
  if holder == token then return take(ttl) end
  local queued = redis.call('ZSCORE', queue, token)
  if queued then keep_alive(window, window) end
  if not holder then
    local first = first_alive()
    if first == false or first == token then return take(ttl) end
    if first then grant(first) end
  end
  if not may_wait then return {0, 0} end
  if not queued then redis.call('ZADD', queue, next_number('place'), token) end
  local before = redis.call('ZRANK', queue, token)
  -- Waiters at the back send heartbeats less often.
  local until_next = window * math.min(1 + math.floor(before / 32), 10)
  keep_alive(until_next, window)
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
  return ask(tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1')
elseif verb == 'release' then
  return give_up_lock()
end
forget(token)
redis.call('DEL', wake_list(token))
give_up_lock()
return 1
