-- Returns the facts that have not expired: key, fact, key, fact … What is no fact, of
-- another version perhaps, is passed over: it must not hide the others.
--
-- KEYS  facts

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]

local all, found = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local expires = tonumber(string.match(all[i + 1], '^(%d+):') or 0)
  if expires and expires > now then
    found[#found + 1] = all[i]
    found[#found + 1] = all[i + 1]
  end
end
return found
