-- Saves facts, all or none, and tells those who watch.
--
-- KEYS  facts (a hash: key → fact), expiry (a sorted set: key → microseconds)
-- ARGV  the channel, what to tell, and of each fact: its key, the fact ('' forgets it),
--       when it expires, in microseconds

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]

-- What takes room comes first: on a server that is full it fails, and then nothing was
-- changed.
local gone = {}
for i = 3, #ARGV, 3 do
  local key, fact, expires = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if fact == '' or tonumber(expires) <= now then
    gone[#gone + 1] = key
  else
    redis.call('HSET', KEYS[1], key, fact)
    redis.call('ZADD', KEYS[2], expires, key)
  end
end

local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 1000)
for _, keys in ipairs({ gone, expired }) do
  for _, key in ipairs(keys) do
    redis.call('HDEL', KEYS[1], key)
    redis.call('ZREM', KEYS[2], key)
  end
end

local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if last[2] then
  local ms = string.format('%.0f', math.ceil(last[2] / 1000))
  redis.call('PEXPIREAT', KEYS[1], ms)
  redis.call('PEXPIREAT', KEYS[2], ms)
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
