-- One decision about one key of package keyed. It is reckoned as State.Decide of that
-- package does, to the microsecond.
--
-- KEYS  clock, state
-- ARGV  kind, limit, period, cost, record (1 or 0)
-- returns how long until there is room (0: there is), how much more there is room for,
--         when nothing counts any more (on the server's clock)

local kind = ARGV[1]
local limit, period, cost = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local record = ARGV[5] == '1'
local retry, remaining, reset = 0, limit, now

-- numbers reads a state that is a string of whole numbers, the first of which is when
-- it expires. It is nil when nothing in it counts any more.
local function numbers()
  local saved = redis.call('GET', KEYS[2])
  if not saved then return nil end
  local s = {}
  for n in string.gmatch(saved, '%d+') do s[#s + 1] = tonumber(n) end
  if s[1] <= now then return nil end
  return s
end

local function write(expires, ...)
  local s = { whole(expires) }
  for _, n in ipairs({ ... }) do s[#s + 1] = whole(n) end
  clock.keep(expires - now)
  redis.call('SET', KEYS[2], table.concat(s, ' '), 'PX', ms(expires - now))
end

local function sliding()
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
    clock.keep(period)
    hits.add(w, first, now, cost, reset, period)
  end
end

-- A window with a beginning is when it expires, the time of its last charge (aligned)
-- or of its first (from the first hit), and how much was charged.
local function counter(aligned)
  local s = numbers()
  local used, at, ends = 0, now, now + period
  if aligned then ends = ends - now % period end
  if s then
    if aligned and s[2] >= ends - period then
      used = s[3]
    elseif not aligned and s[2] + period > now then
      used, at, ends = s[3], s[2], s[2] + period
    end
  end
  if used + cost > limit then
    retry = ends - now
  elseif record then
    used = used + cost
    write(ends, at, used)
  end
  remaining = limit - used
  if used > 0 then reset = ends end
end

-- A bucket is when it is full, that is also when it expires; by which part of a
-- microsecond it is full sooner than that, in units of 1/limit; limit and period.
--
-- What is owed is for how long it is not full: whole microseconds and parts. No
-- product here exceeds 2^53.
local function owe(whole_part, part, n, l, p)
  part = n * (p % l) + part
  return whole_part + n * ((p - p % l) / l) + (part - part % l) / l, part % l
end

local function up(whole_part, part)
  if part > 0 then return whole_part + 1 end
  return whole_part
end

-- left is how many tokens can be owed on top: the most that do not exceed the period.
local function left(whole_part, part, l, p)
  return search(1, l, function(n) return up(owe(whole_part, part, n, l, p)) > p end) - 1
end

local function bucket()
  local s = numbers()
  local owed, part = 0, 0
  if s then
    owed, part = s[1] - now, s[2]
    if part > 0 then owed = owed - 1 end
    if s[3] ~= limit or s[4] ~= period then
      -- As many tokens are missing as before, but no more than there can be.
      local missing = math.min(s[3] - left(owed, part, s[3], s[4]), limit)
      owed, part = owe(0, 0, missing, limit, period)
    end
  end
  local then_owed, then_part = owe(owed, part, cost, limit, period)
  local full = up(then_owed, then_part)
  if full > period then
    retry = full - period
  elseif record then
    owed, part = then_owed, then_part
    write(now + full, part, limit, period)
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
if retry > 0 or not record then clock.keep(0) end

return { retry, math.max(0, remaining), reset - clock.behind }
