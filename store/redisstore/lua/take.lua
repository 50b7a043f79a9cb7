-- Charges every gate or none.
--
-- Processes that find no room claim the next: a later one is admitted only if there is
-- room for those before it as well. So processes that contend take turns, and none
-- is starved by one that asks more often. A claim is dropped when it was served, or
-- when its process did not come when it was told to.
--
-- KEYS  clock, and of each gate its state and, if it slides, its hits
-- ARGV  the process, and of each gate: kind, limit, period, cost, used, back (see merge)
-- returns 1 if admitted or 0, the time, and of each gate how long until there is room
--         for the cost, and how much is used

local process = ARGV[1]

-- queue drops claims that have lapsed. It returns the process's own, if it has one, the
-- cost of those ahead of it, and when the last of those will have lapsed.
local function queue(g)
  local live, mine = {}, nil
  for _, c in ipairs(g.claims) do
    if c.id == process then mine = c end
    if c.told + grace >= now then live[#live + 1] = c end
  end
  if mine and mine.told + grace < now then mine = nil end
  g.claims = live

  local ahead, lapsed = 0, now
  for _, c in ipairs(live) do
    if c ~= mine and (not mine or c.order < mine.order or (c.order == mine.order and c.id < mine.id)) then
      ahead, lapsed = ahead + c.cost, math.max(lapsed, c.told + grace + 1)
    end
  end
  return mine, ahead, lapsed
end

local function claim(g, told)
  if not g.mine then
    g.mine = { id = process, order = now }
    g.claims[#g.claims + 1] = g.mine
  end
  g.mine.told, g.mine.cost = told, g.cost
end

local function unclaim(g)
  for i, c in ipairs(g.claims) do
    if c == g.mine then
      table.remove(g.claims, i)
      return
    end
  end
end

local gates, changed, admitted = {}, {}, true
local k, a = 2, 2
while k <= #KEYS do
  local kind = ARGV[a]
  local g = gate.open(KEYS[k], KEYS[k + 1], kind, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  g.changed = g.rule.merge(g, tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]))

  local ahead, lapsed
  g.mine, ahead, lapsed = queue(g)
  g.wait = 0
  local due = g.rule.due(g, g.cost + ahead)
  if due > now then
    -- Those ahead may not come: when their claims have lapsed, it is worth asking.
    if ahead > 0 then due = math.min(due, math.max(lapsed, g.rule.due(g, g.cost))) end
    g.wait, admitted = due - now, false
  end

  gates[#gates + 1] = g
  k, a = k + (kind == 'sliding' and 2 or 1), a + 6
end

local found = { admitted and 1 or 0, now }
for _, g in ipairs(gates) do
  if admitted then
    g.rule.take(g, g.cost)
    unclaim(g)
  elseif g.wait > 0 then
    claim(g, now + g.wait)
  end
  if admitted or g.wait > 0 or g.changed then changed[#changed + 1] = g end
  found[#found + 1] = g.wait
  found[#found + 1] = g.rule.used(g)
end
gate.save(changed)
return found
