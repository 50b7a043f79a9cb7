-- Charges every gate or none.
--
-- Processes that find no room claim the next: a later one is admitted only if there is
-- room for those before it as well. So processes that contend take turns, and none
-- is starved by one that asks more often. A claim is dropped when its share was taken,
-- or when its process did not come when it was told to.
--
-- KEYS  clock, and of each gate its state and, if it slides, its hits
-- ARGV  the process, and of each gate: kind, limit, period, cost, used, back (see merge)
-- returns 1 if admitted or 0, the time, and of each gate how long until there is room
--         for the cost, and how much is used

local process = ARGV[1]

-- queue drops claims that have lapsed. It returns the place of the process's own, if it
-- has one, how much is kept for those ahead of it, and when the last of those will
-- have lapsed.
local function queue(g)
  local live, mine = {}, nil
  for _, c in ipairs(g.claims) do
    if c.told + grace >= now then
      live[#live + 1] = c
      if c.process == process then mine = #live end
    end
  end
  g.claims = live

  local ahead, lapsed = 0, now
  local n = mine and #live or #live + 1
  for i = 1, (mine or n) - 1 do
    local c = live[i]
    c.share = math.min(c.share, g.rule.share(g, c.cost, n))
    ahead, lapsed = ahead + c.share, math.max(lapsed, c.told + grace + 1)
  end
  return mine, ahead, lapsed
end

-- claim notes when a process that found no room was told to come back.
local function claim(g)
  local place = g.mine or #g.claims + 1
  local share = g.rule.share(g, g.cost, #g.claims + (g.mine and 0 or 1))
  if g.mine then share = math.max(g.rule.share(g, g.cost, math.huge), math.min(g.claims[g.mine].share, share)) end
  g.claims[place] = { process = process, told = now + g.wait, cost = g.cost, share = share }
end

-- served takes what a process was admitted with off its share.
local function served(g)
  local c = g.claims[g.mine]
  c.told, c.share = now, c.share - g.cost
  if c.share <= 0 then table.remove(g.claims, g.mine) end
end

local gates, changed, admitted = {}, {}, true
local k, a = 2, 2
while k <= #KEYS do
  local kind = ARGV[a]
  local g = open(KEYS[k], KEYS[k + 1], kind, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  g.changed = g.rule.merge(g, ARGV[a + 4] + 0, ARGV[a + 5] + 0)

  local ahead, lapsed
  g.mine, ahead, lapsed = queue(g)
  g.wait = 0
  local due = g.rule.due(g, g.need + ahead)
  if due > now then
    -- Those ahead may not come: when their claims have lapsed, it is worth asking.
    if ahead > 0 then due = math.min(due, math.max(lapsed, g.rule.due(g, g.need))) end
    g.wait, admitted = due - now, false
  end

  gates[#gates + 1] = g
  k, a = k + (kind == 'sliding' and 2 or 1), a + 6
end

local found = { admitted and 1 or 0, now }
for _, g in ipairs(gates) do
  if admitted then
    g.rule.take(g, g.cost)
    if g.mine then served(g) end
  elseif g.wait > 0 then
    claim(g)
  end
  if admitted or g.wait > 0 or g.changed then changed[#changed + 1] = g end
  found[#found + 1] = g.wait
  found[#found + 1] = g.rule.used(g)
end
save(changed)
return found
