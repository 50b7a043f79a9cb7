package ratelimit

import (
	"math"
	"slices"
)

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

func (w sliding) most() int64 { return max(w.limit, MaxTimes) }

func (w sliding) due(s state, cost, now int64) int64 {
	later, cost := rounds(cost+s.pending, w.limit)
	due := int64(longAgo)
	if leave := int64(len(s.calls)) + cost - w.limit; leave > 0 {
		due = s.calls[leave-1] + w.period
	}
	if later > 0 {
		due = max(due, now) + later*w.period
	}
	return due
}

// left is how many calls have left the window.
func (w sliding) left(s state, now int64) int {
	n := 0
	for n < len(s.calls) && s.calls[n]+w.period <= now {
		n++
	}
	return n
}

// take notes the time of the call itself, not that when it was due: a window is
// exact, and loses no rate by it.
func (w sliding) take(s state, cost, _, now int64) state {
	if n := w.left(s, now); n == len(s.calls) {
		s.calls = s.calls[:0]
	} else {
		s.calls = s.calls[n:]
	}
	for range cost {
		s.calls = append(s.calls, now)
	}
	return s
}

// giveBack forgets calls of that time, and no others: each makes room at a time of its
// own.
func (w sliding) giveBack(s state, cost, taken, _ int64) state {
	if taken == justTaken && len(s.calls) > 0 {
		taken = s.calls[len(s.calls)-1]
	}
	s.calls = slices.DeleteFunc(s.calls, func(t int64) bool {
		if t != taken || cost == 0 {
			return false
		}
		cost--
		return true
	})
	return s
}

func (w sliding) tokens(s state, now int64) float64 {
	return float64(max(0, w.limit-s.pending-int64(w.used(s, now).Count)))
}

func (w sliding) used(s state, now int64) Used {
	return Used{Count: len(s.calls) - w.left(s, now)}
}

func (w sliding) adopt(s state, _ Used, _ int64) state { return s }

func (w sliding) until(s state) int64 {
	if len(s.calls) == 0 {
		return 0
	}
	return s.calls[len(s.calls)-1] + w.period
}

func (w sliding) inherit(_ algorithm, s state, _ Inheritance, _ int64) state { return s }

// fixed is a window that begins at a moment and ends a period later.
type fixed struct {
	limit, period int64
	aligned       bool
	offset        int64 // aligned: the limiter's start, since the last multiple of period
}

// read returns when the window began and how much has passed in it.
func (w fixed) read(s state) (begin, passed int64) {
	if s.calls == nil {
		return -w.period, 0
	}
	return s.calls[0], s.calls[1]
}

func (w fixed) capacity() int64 { return w.limit }

func (w fixed) most() int64 { return max(w.limit, MaxTimes) }

func (w fixed) due(s state, cost, now int64) int64 {
	begin, passed := w.read(s)
	cost += s.pending             // they count in the window of the moment, whichever that is
	passed = min(passed, w.limit) // more than the limit takes no longer to leave
	if passed+cost <= w.limit {
		return longAgo
	}
	later, _ := rounds(passed+cost, w.limit)
	if now < begin+w.period {
		return begin + later*w.period
	}
	// Nothing of that window counts any more, but there was no room in it either.
	if later, _ = rounds(cost, w.limit); later == 0 {
		return begin + w.period
	}
	return w.begin(now) + later*w.period
}

// begin is when the window of a first call at now begins.
func (w fixed) begin(now int64) int64 {
	if !w.aligned {
		return now
	}
	return now - (now+w.offset)%w.period
}

func (w fixed) take(s state, cost, _, now int64) state {
	begin, passed := w.read(s)
	if now >= begin+w.period {
		begin, passed = w.begin(now), 0
	}
	return w.write(s, begin, passed+cost)
}

func (w fixed) write(s state, begin, passed int64) state {
	if s.calls == nil {
		s.calls = make([]int64, 2)
	}
	s.calls[0], s.calls[1] = begin, passed
	return s
}

// giveBack knows a call of an earlier window by its time.
func (w fixed) giveBack(s state, cost, taken, _ int64) state {
	if begin, passed := w.read(s); passed > 0 && taken >= begin {
		return w.write(s, begin, max(0, passed-cost))
	}
	return s
}

func (w fixed) tokens(s state, now int64) float64 {
	return float64(max(0, w.limit-s.pending-int64(w.used(s, now).Count)))
}

func (w fixed) used(s state, now int64) Used {
	begin, passed := w.read(s)
	if now >= begin+w.period {
		return Used{}
	}
	return Used{Count: int(passed)}
}

func (w fixed) adopt(s state, _ Used, _ int64) state { return s }

func (w fixed) until(s state) int64 {
	begin, _ := w.read(s)
	return begin + w.period
}

func (w fixed) inherit(before algorithm, s state, _ Inheritance, now int64) state {
	begin, passed := w.read(s)
	switch {
	case s.calls == nil:
	case now >= begin+before.(fixed).period: // nothing of it counts any more
		return w.write(s, -w.period, 0)
	case w.aligned: // it counts for the window that now belongs to
		return w.write(s, w.begin(now), passed)
	}
	return s
}
