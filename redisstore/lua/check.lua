-- Tries each command that the other scripts run, and returns those that failed, each with
-- what the server said.
--
-- KEYS  a key to try them on, and one of each other sort, so that the user must have them
-- ARGV  the channel

local key = KEYS[1]
local failed = {}

local function try(command, ...)
  local got = redis.pcall(command, ...)
  if type(got) == 'table' and got.err then
    failed[#failed + 1] = command
    failed[#failed + 1] = got.err
  end
end

try('time')
-- The first write is one that needs memory: once a script has written, the server lets it
-- go over maxmemory.
try('set', key, '1', 'PX', '1000')
try('del', key)
try('set', key, '1', 'PX', '1000')
try('get', key)
try('del', key)
try('rpush', key, '1', '2')
try('llen', key)
try('lrange', key, '0', '-1')
try('lindex', key, '0')
try('lset', key, '0', '1')
try('ltrim', key, '0', '-1')
try('pexpire', key, '1000')
try('del', key)
try('hset', key, 'f', '1')
try('hgetall', key)
try('hdel', key, 'f')
try('del', key)
try('zadd', key, '1', 'm')
try('zrangebyscore', key, '-inf', '1', 'LIMIT', 0, 1)
try('zrevrange', key, 0, 0, 'WITHSCORES')
try('pexpireat', key, '9000000000000')
try('zrem', key, 'm')
try('del', key)
try('publish', ARGV[1], '')
return failed
