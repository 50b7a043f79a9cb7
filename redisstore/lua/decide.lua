-- One decision about one key of package quota. It is reckoned as State.Decide of that
-- package does, to the microsecond.
--
-- KEYS  clock, state
-- ARGV  kind, limit, period, cost, record (1 or 0)
-- returns how long until there is room (0: there is), how much more there is room for,
--         when nothing counts any more (on the server's clock)

local kind, limit, period, cost = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local record = ARGV[5] == '1'
local retry, remaining, reset = 0, limit, now

-- saved is a state that is a string. It is nil when nothing in it counts any more.
local function saved(pattern)
  local s = redis.call('GET', KEYS[2])
  if not s then return nil end
  local expires, a, b, c = string.match(s, pattern)
  if expires + 0 <= now then return nil end
  return expires + 0, a + 0, b + 0, c and c + 0
end

local function save(expires, state)
  keep(expires - now)
  redis.call('SET', KEYS[2], state, 'PX', ms(expires - now))
end

local function sliding()
  local hits = new_hits()
  local w = hits.open(KEYS[2])
  local first, used = w.n + 1, 0
  if w.n > 0 and hits.expires(w) > now then
    first = hits.after(w, now - period)
    used = hits.sum(w, w.n) - hits.sum(w, first - 1)
  end
  remaining = limit - used
  if used > 0 then reset = hits.time(w, w.n) + period end
  local over = used + cost - limit
  if over > 0 then
    retry = hits.leaves(w, first, over) + period - now
  elseif record then
    remaining, reset = remaining - cost, now + period
    keep(period)
    hits.add(w, first, cost, period)
  end
end

-- A window with a beginning is when it expires, the time of its last charge (aligned)
-- or of its first (from the first hit), and how much was charged.
local function counter(aligned)
  local expires, charged, n = saved('^(%d+) (%d+) (%d+)$')
  local used, at, ends = 0, now, now + period
  if charged and charged > now then charged = now end -- nobody has written that
  if n then n = math.min(n, 1048576) end
  if aligned then ends = ends - now % period end
  if expires then
    if aligned and charged >= ends - period then
      used = n
    elseif not aligned and charged + period > now then
      used, at, ends = n, charged, charged + period
    end
  end
  if used + cost > limit then
    retry = ends - now
  elseif record then
    used = used + cost
    save(ends, format('%d %d %d', ends, at, used))
  end
  remaining = limit - used
  if used > 0 then reset = ends end
end

-- A bucket is when it is full, that is also when it expires; by which part of a
-- microsecond it is full sooner than that, in units of 1/limit; limit and period.
local function bucket()
  -- What is owed is for how long it is not full: whole microseconds and parts. No
  -- product here exceeds 2^53.
  local function owe(owed, part, n, l, p)
    part = n * (p % l) + part
    return owed + n * ((p - p % l) / l) + (part - part % l) / l, part % l
  end

  local function up(owed, part)
    if part > 0 then return owed + 1 end
    return owed
  end

  -- left is how many tokens can be owed on top: the most that do not exceed the period.
  -- A first guess is off by the rounding of a division at most.
  local function left(owed, part, l, p)
    local n = math.min(l, math.max(0, math.floor((p - owed) / p * l)))
    while n < l and up(owe(owed, part, n + 1, l, p)) <= p do n = n + 1 end
    while n > 0 and up(owe(owed, part, n, l, p)) > p do n = n - 1 end
    return n
  end

  local owed, part = 0, 0
  local full, fraction, l, p = saved('^(%d+) (%d+) (%d+) (%d+)$')
  if full then
    owed, part = full - now, fraction
    if part > 0 then owed = owed - 1 end
    if l < 1 or p < 1 then l, p, owed, part = limit, period, period, 0 end
    owed = math.min(owed, p)
    if l ~= limit or p ~= period then
      -- As many tokens are missing as before, but no more than there can be.
      local missing = math.min(l - left(owed, part, l, p), limit)
      owed, part = owe(0, 0, missing, limit, period)
    end
  end
  local then_owed, then_part = owe(owed, part, cost, limit, period)
  local then_full = up(then_owed, then_part)
  if then_full > period then
    retry = then_full - period
  elseif record then
    owed, part = then_owed, then_part
    save(now + then_full, format('%d %d %d %d', now + then_full, part, limit, period))
  end
  remaining, reset = left(owed, part, limit, period), now + up(owed, part)
end

if kind == 'sliding' then
  sliding()
elseif kind == 'bucket' then
  bucket()
else
  counter(kind == 'aligned')
end

-- Of a decision that was not recorded, the time remains: it is one that was told.
if retry > 0 or not record then keep(0) end

return { retry, math.max(0, remaining), reset - behind }
