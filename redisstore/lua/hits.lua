-- The hits of a sliding window are a list of whole numbers:
--
--   when it expires, the sum of all costs before the first hit,
--   and of each hit, oldest first: its time, the sum of all costs up to and with it
--
-- The sums make what counts a subtraction, and what has to leave for a cost a search.
-- An element takes some ten bytes.

-- search returns the first i from i to j for which past is true, or j + 1.
local function search(i, j, past)
  while i <= j do
    local m = math.floor((i + j) / 2)
    if past(m) then j = m - 1 else i = m + 1 end
  end
  return i
end

local function new_hits()
  local hits = {}

  local short = 64 -- so many hits are read at once; of more, what a search looks at

  function hits.open(key)
    local w = { key = key, n = 0 }
    local len = redis.call('LLEN', key)
    if len > 0 then
      w.n = (len - 2) / 2
      if w.n <= short then w.all = redis.call('LRANGE', key, 0, -1) end
    end
    return w
  end

  local function element(w, i)
    if w.all then return w.all[i + 1] + 0 end
    return redis.call('LINDEX', w.key, format('%d', i)) + 0
  end

  function hits.expires(w) return element(w, 0) end

  -- The time of the i-th hit, from 1.
  function hits.time(w, i) return element(w, 2 * i) end

  -- The sum of costs up to and with the i-th hit, from 0.
  function hits.sum(w, i)
    if w.n == 0 then return 0 end
    return element(w, 2 * i + 1)
  end

  -- after is the first hit that is later than t.
  function hits.after(w, t)
    return search(1, w.n, function(i) return hits.time(w, i) > t end)
  end

  -- leaves is the time of the hit that has to leave for the sum of the hits from the
  -- first on to drop by cost.
  function hits.leaves(w, first, cost)
    local start = hits.sum(w, first - 1)
    local i = search(first, w.n - 1, function(m) return hits.sum(w, m) - start >= cost end)
    return hits.time(w, i)
  end

  -- add records a hit at this time, and drops those before the first.
  function hits.add(w, first, cost, ttl)
    local expires = format('%d', now + ttl)
    if first > w.n then
      redis.call('DEL', w.key)
      redis.call('RPUSH', w.key, expires, '0', format('%d', now), format('%d', cost))
    else
      local start, total = hits.sum(w, first - 1), format('%d', hits.sum(w, w.n) + cost)
      if hits.time(w, w.n) == now then
        redis.call('LSET', w.key, -1, total)
      else
        redis.call('RPUSH', w.key, format('%d', now), total)
      end
      if first > 1 then redis.call('LTRIM', w.key, format('%d', 2 * (first - 1)), -1) end
      redis.call('LSET', w.key, 0, expires)
      redis.call('LSET', w.key, 1, format('%d', start))
    end
    redis.call('PEXPIRE', w.key, ms(ttl))
  end

  -- remove takes cost off what was recorded at t. The hit stays, with a cost of less.
  function hits.remove(w, t, cost)
    local i = hits.after(w, t - 1)
    if i > w.n or hits.time(w, i) ~= t then return end
    cost = math.min(cost, hits.sum(w, i) - hits.sum(w, i - 1))
    for j = i, w.n do
      redis.call('LSET', w.key, format('%d', 2 * j + 1), format('%d', hits.sum(w, j) - cost))
    end
  end

  return hits
end
