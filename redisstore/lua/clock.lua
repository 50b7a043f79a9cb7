-- The account's clock: that of the server in microseconds, which never goes back.
--
-- KEYS[1] holds the last time that was told, how far the server's clock is behind it,
-- and until when somebody may need to know. When the server's clock is set back, time
-- goes on from where it was: nothing that was charged seems to lie in the future,
-- where it would lock its key, and nothing is given back.
--
-- All numbers are whole and below 2^53. Lua would write large ones as 1e+15.
--
-- A script is run from its first line each time, and to make a function takes as long
-- as to call it. So what only some rules need is made when they need it.

local format = string.format

-- ms is a time to live for Redis, which counts it in milliseconds.
local function ms(ttl) return format('%d', math.max(1, math.ceil(ttl / 1000))) end

local behind, needed = 0, 0
local now
do
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
  local saved = redis.call('GET', KEYS[1])
  if saved then
    local last
    last, behind, needed = string.match(saved, '^(%d+) (%d+) (%d+)$')
    behind, needed = math.max(behind + 0, last - now), needed + 0
    -- keyed.MaxAhead: what is further ahead is damage, or no clock worth making up for.
    if behind > 366 * 86400 * 1000000 then
      redis.log(redis.LOG_WARNING, KEYS[1] .. ' is not believed: more than 366 days ahead of this server')
      behind, needed = 0, 0
    end
    now = now + behind
    needed = math.min(needed, now + 200 * 366 * 86400 * 1000000) -- twice the longest window
  end
end

-- keep writes the clock, for as long as what is written at this time, or was before,
-- may be needed. It has to be the first write of a script: on a server that is full it
-- fails, and then nothing was changed.
local function keep(ttl)
  needed = math.max(needed, now + ttl)
  if needed > now then
    redis.call('SET', KEYS[1], format('%d %d %d', now, behind, needed), 'PX', ms(needed - now))
  end
end
