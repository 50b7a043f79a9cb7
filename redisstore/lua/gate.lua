-- A gate that processes share. Its key holds what was taken of a bucket or of a window
-- with a beginning, and the claims of processes that wait; the times of a sliding
-- window are a list of their own (see hits).
--
--   b full interval burst | claim | claim …      full: when the bucket will be
--   f begin used before period | claim …         before: used in the window before
--   - | claim …                                  sliding, or nothing is used
--
-- A claim is "process told cost share": when the process was told to come back, for how
-- much, and how much is kept for it. They are in the order in which the processes first
-- found no room.

local grace = 100000 -- by so much may a process come later than it was told

-- new_rule returns the functions of a kind of rule:
--
--   open(g, head)         reads the state
--   merge(g, used, back)  sees to it that at least so much is used; true if it was less
--   due(g, cost)          since when there is room for cost, or when there will be, in
--                         a queue that may be longer than the gate is wide
--   take(g, cost)         charges it
--   undo(g, taken)        gives back the cost that was charged at a time
--   share(g, cost, n)     how much is kept for a process that wants cost, one of n
--   used(g)               how much is used, as processes are told
--   head(g)               the state as a string, and until when it is needed

local function new_bucket()
  local bucket = {}

  -- Of a bucket, limit is the burst, and period what one token takes.
  function bucket.open(g, head)
    g.full = now
    local full, interval, burst = string.match(head, '^b (%d+) (%d+) (%d+)$')
    if not full then return end
    g.full, interval, burst = full + 0, interval + 0, burst + 0
    if interval == 0 then interval, burst = g.period, 0 end -- what nobody has written: nothing is left
    if interval ~= g.period or burst ~= g.limit then
      -- The tokens are carried over, and cut to what the bucket holds now.
      -- What it has is below zero if it is in debt.
      local had = (burst * interval - math.max(0, g.full - now)) / interval
      g.full = now + math.ceil((g.limit - math.min(had, g.limit)) * g.period)
    end
    g.full = math.min(g.full, now + g.most * g.period) -- more cannot be missing
  end

  -- A process reckons from when it heard, so it is late by what a message takes on its
  -- way. So much does not count, or each take would push the bucket further.
  function bucket.merge(g, used, back)
    if now + used <= g.full + back then return false end
    g.full = now + used
    return true
  end

  function bucket.due(g, cost) return g.full + (cost - g.limit) * g.period end

  function bucket.take(g, cost) g.full = math.max(g.full, now) + cost * g.period end

  -- What the bucket has refilled since is not given back: whether it had spilled over by
  -- then nobody knows, and to give it twice would let through more than the limit.
  function bucket.undo(g, taken)
    local back = math.max(0, g.cost * g.period - (now - taken))
    g.full = math.max(g.full - back, math.min(g.full, now))
  end

  -- Tokens come one by one, and so do the processes.
  function bucket.share(_, cost) return cost end

  function bucket.used(g) return math.max(0, g.full - now) end

  function bucket.head(g)
    return format('b %d %d %d', g.full, g.period, g.limit), g.full
  end

  return bucket
end

-- A queue that is longer than a window is wide is served a window's worth at a time.
local function rounds(cost, limit)
  local later = math.floor((cost - 1) / limit)
  return later, cost - later * limit
end

-- A window may become free all at once. Then the first to come would take it all while
-- the others are on their way, if not an equal share was kept for each.
-- All that a call has taken of a window leaves it together, even if that is more than the
-- window's limit.
local function equal_share(g, cost, n)
  return math.max(math.min(cost, g.limit), math.floor(g.limit / n))
end

local function new_sliding()
  local hits = new_hits()
  local sliding = { hits = hits }

  function sliding.open(g)
    g.hits = hits.open(g.hits_key)
    g.first = hits.after(g.hits, now - g.period)
    g.count = hits.sum(g.hits, g.hits.n) - hits.sum(g.hits, g.first - 1)
    g.added = 0
  end

  -- What a process counts may have left meanwhile, and it may have heard of it late: if
  -- the hits so far back explain its count, it knows of no others.
  function sliding.merge(g, used, back)
    local explained = hits.sum(g.hits, g.hits.n) - hits.sum(g.hits, hits.after(g.hits, now - back) - 1)
    if used <= explained or used <= g.count then return false end
    g.added = used - g.count
    return true
  end

  function sliding.due(g, cost)
    local later, rest = rounds(cost, g.limit)
    local over = g.count + g.added + rest - g.limit
    local due = now
    if over > g.count then
      due = now + g.period
    elseif over > 0 then
      due = hits.leaves(g.hits, g.first, over) + g.period
    end
    return due + later * g.period
  end

  function sliding.take(g, cost) g.added = g.added + cost end

  function sliding.undo(g, taken) hits.remove(g.hits, taken, g.cost) end

  sliding.share = equal_share

  function sliding.used(g) return g.count + g.added end

  function sliding.head() return '-', 0 end

  return sliding
end

-- A window with a beginning, which is a whole number of periods since the epoch, or
-- that of its first hit.
local function new_fixed(begin)
  local r = {}

  function r.open(g, head)
    g.begin, g.count, g.before, g.turned = begin(g), 0, 0, now
    local at, count, before, period = string.match(head, '^f (%d+) (%d+) (%d+) (%d+)$')
    if not at then return end
    at, count, before, period = at + 0, count + 0, before + 0, period + 0
    if at > now then at = g.begin end -- time does not go back, so nobody has written that
    count = math.min(count, 1048576)
    if period ~= g.period then
      -- What counted under the old period counts for the window that now belongs to.
      if at + period <= now then return end
      at, before = math.max(at, begin(g, at)), 0
    end
    if count > 0 and now < at + g.period then
      g.begin, g.count, g.before, g.turned = at, count, before, at
    else
      g.before, g.turned = count, at + g.period
    end
  end

  -- As with a sliding window, what the window before explains is not known of anew.
  function r.merge(g, used, back)
    local explained = g.count
    if now - g.turned < back - g.period then explained = explained + g.before end
    if used <= explained then return false end
    g.count = used
    return true
  end

  function r.due(g, cost)
    local later = rounds(math.min(g.count, g.limit) + cost, g.limit)
    if later == 0 then return now end
    return g.begin + later * g.period
  end

  function r.take(g, cost) g.count = g.count + cost end

  function r.undo(g, taken)
    if taken >= g.begin then g.count = math.max(0, g.count - g.cost) end
  end

  r.share = equal_share

  function r.used(g) return g.count end

  function r.head(g)
    return format('f %d %d %d %d', g.begin, g.count, g.before, g.period), g.begin + 2 * g.period
  end

  return r
end

local function new_rule(kind)
  if kind == 'bucket' then return new_bucket() end
  if kind == 'sliding' then return new_sliding() end
  if kind == 'aligned' then return new_fixed(function(g) return now - now % g.period end) end
  return new_fixed(function(_, at) return at or now end)
end

local rules = {}

-- open reads a gate.
local function open(state_key, hits_key, kind, limit, period, cost)
  rules[kind] = rules[kind] or new_rule(kind)
  local g = {
    key = state_key, hits_key = hits_key, rule = rules[kind],
    limit = limit + 0, period = period + 0, cost = cost + 0, claims = {},
  }
  -- A cost beyond the limit needs a full bucket or an empty window, and is charged whole.
  g.need = math.min(g.cost, g.limit)
  -- The most that one call is charged, as ratelimit.MaxTimes and a debt of 100 years bound it.
  g.most = math.max(g.limit, 1000)
  if kind == 'bucket' then
    g.most = math.max(g.limit, math.min(1000, math.floor(100 * 365 * 86400 * 1000000 / g.period)))
  end
  local head = '-'
  g.saved = redis.call('GET', state_key)
  if g.saved then
    local claims = string.find(g.saved, '|', 1, true)
    head = string.sub(g.saved, 1, (claims or 0) - 1)
    if claims then
      for process, told, cost, share in string.gmatch(g.saved, '|(%w+) (%d+) (%d+) (%d+)') do
        g.claims[#g.claims + 1] = { process = process, told = told + 0, cost = cost + 0, share = share + 0 }
      end
    end
  end
  g.rule.open(g, head)
  -- A claim waits for those before it at most, each for all that the gate holds.
  local span = (kind == 'bucket' and g.most or 1) * g.period * (#g.claims + 1) + grace
  for i = #g.claims, 1, -1 do
    local c = g.claims[i]
    c.cost, c.share = math.min(c.cost, g.most), math.min(c.share, g.most)
    if c.told > now + span then table.remove(g.claims, i) end
  end
  return g
end

-- save writes gates that have changed, and the clock before.
local function save(gates)
  local ttl = 0
  for _, g in ipairs(gates) do
    local lasts
    g.value, lasts = g.rule.head(g)
    for _, c in ipairs(g.claims) do
      lasts = math.max(lasts, c.told + grace)
      g.value = g.value .. format('|%s %d %d %d', c.process, c.told, c.cost, c.share)
    end
    g.ttl = lasts - now
    ttl = math.max(ttl, g.ttl)
    if g.hits then ttl = math.max(ttl, 2 * g.period) end
  end
  keep(ttl)
  for _, g in ipairs(gates) do
    if g.ttl > 0 then
      redis.call('SET', g.key, g.value, 'PX', ms(g.ttl))
    elseif g.saved then
      redis.call('DEL', g.key)
    end
    if g.hits and g.added > 0 then
      -- Kept for two periods, to tell what a process still counts that is late.
      local hits = g.rule.hits
      hits.add(g.hits, hits.after(g.hits, now - 2 * g.period), g.added, 2 * g.period)
    end
  end
end
