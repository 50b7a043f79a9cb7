-- The account's clock: that of the server in microseconds, which never goes back.
--
-- KEYS[1] holds the last time that was told, how far the server's clock is behind it,
-- and until when somebody may need to know. When the server's clock is set back, time
-- goes on from where it was: nothing that was charged seems to lie in the future,
-- where it would lock its key, and nothing is given back.
--
-- All numbers are whole and below 2^53. Lua writes large ones as 1e+15 unless asked.

local function whole(x) return string.format('%.0f', x) end

-- ms is a time to live for Redis, which counts it in milliseconds.
local function ms(ttl) return whole(math.max(1, math.ceil(ttl / 1000))) end

local clock = {}
do
  local t = redis.call('TIME')
  local server = tonumber(t[1]) * 1000000 + tonumber(t[2])
  local last, behind, needed = 0, 0, 0
  local saved = redis.call('GET', KEYS[1])
  if saved then
    last, behind, needed = string.match(saved, '^(%d+) (%d+) (%d+)$')
    last, behind, needed = tonumber(last), tonumber(behind), tonumber(needed)
  end
  behind = math.max(behind, last - server)
  clock.now, clock.behind, clock.needed = server + behind, behind, needed
end
local now = clock.now

-- keep writes the clock, for as long as what is written at this time, or was before,
-- may be needed. It has to be the first write of a script: on a server that is full it
-- fails, and then nothing was changed.
function clock.keep(ttl)
  local needed = math.max(clock.needed, now + ttl)
  if needed <= now then return end
  redis.call('SET', KEYS[1], whole(now) .. ' ' .. whole(clock.behind) .. ' ' .. whole(needed),
    'PX', ms(needed - now))
end
