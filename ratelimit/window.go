package ratelimit

import "math"

func (w Window) algorithm(s *set) algorithm {
	if w.Kind == Sliding {
		return sliding{limit: int64(w.Limit), period: int64(w.Period), kept: &s.kept}
	}
	f := fixed{limit: int64(w.Limit), period: int64(w.Period), aligned: w.Kind == Aligned, kept: &s.kept}
	if f.aligned {
		f.offset = s.limiter.start.UnixNano() % f.period
	}
	return f
}

// longAgo is the due of what has had room since ever.
const longAgo = math.MinInt64 / 2

// rounds tells how many windows have to pass until it is the turn of cost in a
// queue, and what it costs in its own. A queue longer than one window is served a
// window's worth at a time.
func rounds(cost, limit int64) (later, rest int64) {
	if limit == 0 {
		return 0, cost
	}
	later = (cost - 1) / limit
	return later, cost - later*limit
}

// sliding is an exact window: it remembers when each of the last calls passed.
type sliding struct {
	limit, period int64
	kept          *histories
}

func (w sliding) capacity() int64 { return w.limit }

func (w sliding) most() int64 { return maxWindow }

func (w sliding) due(s *state, cost, now int64) int64 {
	later, cost := rounds(cost, w.limit)
	due := int64(longAgo)
	if k := int64(w.calls(s)) + cost - w.limit; k > 0 {
		due = w.call(s, int32(k)-1) + w.period
	}
	if later > 0 {
		due = max(due, now) + later*w.period
	}
	return due
}

// calls is how many calls a sliding window remembers.
func (w sliding) calls(s *state) int32 {
	switch h := w.kept.of(s); {
	case h != nil:
		return h.n
	case s.at != 0:
		return 1
	default:
		return 0
	}
}

// call is the time of the i-th oldest of them.
func (w sliding) call(s *state, i int32) int64 {
	if h := w.kept.of(s); h != nil {
		return h.at(i)
	}
	return s.at
}

// take notes the time of the call itself, not that when it was due: a window is
// exact, and loses no rate by it.
func (w sliding) take(s *state, cost, _, now int64) {
	if h := w.kept.of(s); h != nil {
		for h.n > 0 && h.at(0)+w.period <= now {
			h.first = (h.first + 1) % h.size()
			h.n--
		}
	} else if s.at != 0 && s.at+w.period > now {
		w.kept.push(s, s.at, max(w.limit, cost+1))
	} else if cost == 1 {
		s.at = now
		return
	}
	for range cost {
		w.kept.push(s, now, max(w.limit, int64(w.calls(s))+1))
	}
}

// giveBack forgets calls of that time, and no others: each makes room at a time of its
// own.
func (w sliding) giveBack(s *state, cost, taken, _ int64) {
	n := w.calls(s)
	if n == 0 {
		return
	}
	if taken == justTaken {
		taken = w.call(s, n-1)
	}
	h := w.kept.of(s)
	if h == nil {
		if taken == s.at {
			s.at = 0
		}
		return
	}
	kept := int32(0)
	for i := range n {
		if t := h.at(i); t != taken || cost == 0 {
			h.times[(h.first+kept)%h.size()] = t
			kept++
		} else {
			cost--
		}
	}
	h.n = kept
}

func (w sliding) tokens(s *state, now int64) float64 {
	return float64(max(0, w.limit-int64(w.used(s, now).Count)))
}

func (w sliding) used(s *state, now int64) (used Used) {
	for i := range w.calls(s) {
		if w.call(s, i)+w.period > now {
			used.Count++
		}
	}
	return used
}

func (w sliding) adopt(*state, Used, int64) {}

func (w sliding) forget(s *state, now int64) bool {
	if n := w.calls(s); n > 0 && w.call(s, n-1)+w.period > now {
		return false
	}
	w.kept.drop(s)
	return true
}

func (w sliding) inherit(_ algorithm, s *state, how Inheritance, _ int64) {
	if how == Reset {
		w.kept.drop(s)
	}
}

// fixed is a window that begins at a moment and ends a period later.
type fixed struct {
	limit, period int64
	aligned       bool
	offset        int64 // aligned: the limiter's start, since the last multiple of period
	kept          *histories
}

func (w fixed) capacity() int64 { return w.limit }

func (w fixed) most() int64 { return maxWindow }

func (w fixed) due(s *state, cost, now int64) int64 {
	h := w.kept.of(s)
	if h == nil {
		later, _ := rounds(cost, w.limit)
		if later == 0 {
			return longAgo
		}
		return w.begin(now) + later*w.period
	}
	begin, passed := h.times[0], min(int64(h.n), w.limit) // more than the limit takes no longer to leave
	if now >= begin+w.period {
		// Nothing of that window counts any more, but there was no room in it either.
		if passed+cost <= w.limit {
			return longAgo
		}
		later, _ := rounds(cost, w.limit)
		if later == 0 {
			return begin + w.period
		}
		return w.begin(now) + later*w.period
	}
	later, _ := rounds(passed+cost, w.limit)
	if later == 0 {
		return longAgo
	}
	return begin + later*w.period
}

// begin is when the window of a first call at now begins.
func (w fixed) begin(now int64) int64 {
	if !w.aligned {
		return now
	}
	return now - (now+w.offset)%w.period
}

func (w fixed) take(s *state, cost, _, now int64) {
	h := w.kept.of(s)
	if h == nil {
		h = newHistory(1)
		w.kept.set(s, h)
	} else if now < h.times[0]+w.period {
		h.n += int32(cost)
		return
	}
	h.times[0], h.n = w.begin(now), int32(cost)
}

// giveBack knows a call of an earlier window by its time.
func (w fixed) giveBack(s *state, cost, taken, _ int64) {
	if h := w.kept.of(s); h != nil && taken >= h.times[0] {
		h.n = max(0, h.n-int32(cost))
	}
}

func (w fixed) tokens(s *state, now int64) float64 {
	return float64(max(0, w.limit-int64(w.used(s, now).Count)))
}

func (w fixed) used(s *state, now int64) Used {
	if h := w.kept.of(s); h != nil && now < h.times[0]+w.period {
		return Used{Count: int(h.n)}
	}
	return Used{}
}

func (w fixed) adopt(*state, Used, int64) {}

func (w fixed) forget(s *state, now int64) bool {
	if h := w.kept.of(s); h != nil && now < h.times[0]+w.period {
		return false
	}
	w.kept.drop(s)
	return true
}

func (w fixed) inherit(before algorithm, s *state, how Inheritance, now int64) {
	h := w.kept.of(s)
	switch {
	case h == nil:
	case how == Reset || now >= h.times[0]+before.(fixed).period:
		w.kept.drop(s) // nothing has passed that still counts
	case w.aligned:
		h.times[0] = w.begin(now) // what has passed counts for the window that now belongs to
	}
}
