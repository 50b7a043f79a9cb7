package ratelimit

import "math"

func (w Window) algorithm(l *Limiter) algorithm {
	if w.Kind == Sliding {
		return sliding{limit: int64(w.Limit), period: int64(w.Period)}
	}
	f := fixed{limit: int64(w.Limit), period: int64(w.Period), aligned: w.Kind == Aligned}
	if f.aligned {
		f.offset = l.start.UnixNano() % f.period
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
type sliding struct{ limit, period int64 }

func (w sliding) capacity() int64 { return w.limit }

func (w sliding) due(s *state, cost, now int64) int64 {
	later, cost := rounds(cost, w.limit)
	due := int64(longAgo)
	if k := int64(s.calls()) + cost - w.limit; k > 0 {
		due = s.call(int32(k)-1) + w.period
	}
	if later > 0 {
		due = max(due, now) + later*w.period
	}
	return due
}

// calls is how many calls a sliding window remembers.
func (s *state) calls() int32 {
	switch {
	case s.hits != nil:
		return s.hits.n
	case s.at != 0:
		return 1
	default:
		return 0
	}
}

// call is the time of the i-th oldest of them.
func (s *state) call(i int32) int64 {
	if s.hits == nil {
		return s.at
	}
	return s.hits.at(i)
}

// take notes the time of the call itself, not that when it was due: a window is
// exact, and loses no rate by it.
func (w sliding) take(s *state, cost, _, now int64) {
	if h := s.hits; h != nil {
		for h.n > 0 && h.at(0)+w.period <= now {
			h.first = (h.first + 1) % h.size()
			h.n--
		}
	} else if s.at != 0 && s.at+w.period > now {
		s.push(s.at, w.limit)
	}
	if s.hits != nil || cost > 1 {
		for range cost {
			s.push(now, w.limit)
		}
	}
	s.at = now
}

// giveBack forgets calls of that time, and no others: each makes room at a time of its
// own.
func (w sliding) giveBack(s *state, cost, taken, _ int64) {
	n := s.calls()
	if n == 0 {
		return
	}
	if taken == justTaken {
		taken = s.call(n - 1)
	}
	h := s.hits
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
	for i := range s.calls() {
		if s.call(i)+w.period > now {
			used.Count++
		}
	}
	return used
}

func (w sliding) adopt(*state, Used, int64) {}

func (w sliding) asNew(s *state, now int64) bool { return s.calls() == 0 || s.at+w.period <= now }

func (w sliding) inherit(_ algorithm, s *state, how Inheritance, _ int64) {
	if how == Reset {
		*s = state{}
	}
}

// fixed is a window that begins at a moment and ends a period later.
type fixed struct {
	limit, period int64
	aligned       bool
	offset        int64 // aligned: the limiter's start, since the last multiple of period
}

func (w fixed) capacity() int64 { return w.limit }

func (w fixed) due(s *state, cost, now int64) int64 {
	if s.hits == nil {
		later, _ := rounds(cost, w.limit)
		if later == 0 {
			return longAgo
		}
		return w.begin(now) + later*w.period
	}
	begin := s.at
	passed := int64(s.hits.n)
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
	if s.hits == nil {
		s.hits = &history{}
	} else if now < s.at+w.period {
		s.hits.n += int32(cost)
		return
	}
	s.at, s.hits.n = w.begin(now), int32(cost)
}

// giveBack knows a call of an earlier window by its time.
func (w fixed) giveBack(s *state, cost, taken, _ int64) {
	if s.hits != nil && taken >= s.at {
		s.hits.n = max(0, s.hits.n-int32(cost))
	}
}

func (w fixed) tokens(s *state, now int64) float64 {
	return float64(max(0, w.limit-int64(w.used(s, now).Count)))
}

func (w fixed) used(s *state, now int64) Used {
	if s.hits == nil || now >= s.at+w.period {
		return Used{}
	}
	return Used{Count: int(s.hits.n)}
}

func (w fixed) adopt(*state, Used, int64) {}

func (w fixed) asNew(s *state, now int64) bool { return s.hits == nil || s.at+w.period <= now }

func (w fixed) inherit(before algorithm, s *state, how Inheritance, now int64) {
	if how == Reset || s.hits != nil && now >= s.at+before.(fixed).period {
		*s = state{} // nothing has passed that still counts
		return
	}
	if s.hits != nil && w.aligned {
		s.at = w.begin(now) // what has passed counts for the window that now belongs to
	}
}
