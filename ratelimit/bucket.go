package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// bucket is a token bucket in nanoseconds. In place of a number of tokens, its state is
// the time at which it is full. Taking a token moves that time one interval into the
// future, and the passing of time is the refill, so nothing drifts.
//
// A paused bucket does not refill, and its state is how far it is from full.
type bucket struct {
	interval int64 // what one token takes to refill, rounded up; never 0
	burst    int64
	paused   bool
}

func (l Limit) algorithm(*Limiter) algorithm {
	b := bucket{burst: int64(l.Burst), paused: l.Paused()}
	if b.paused {
		b.interval = int64(time.Second) // a unit to keep the tokens in
	} else {
		b.interval = max(1, int64(math.Ceil(float64(time.Second)/l.Rate)))
	}
	return b
}

func (b bucket) capacity() int64 { return b.burst }

func (b bucket) most() int64 { return max(b.burst, min(MaxTimes, int64(maxSpan)/b.interval)) }

func (b bucket) due(s state, cost, now int64) int64 {
	if s.pending > 0 {
		s.full = max(s.full, now)
	}
	beyond := cost + s.pending - b.burst
	if beyond > math.MaxInt64/4/b.interval {
		return math.MaxInt64 / 2 // a queue of more than a lifetime
	}
	return s.full + beyond*b.interval
}

func (b bucket) take(s state, cost, due, _ int64) state {
	if b.paused {
		s.full += cost * b.interval
		return s
	}
	s.full = max(s.full, due) + cost*b.interval
	return s
}

// giveBack gives back the cost less the refill since the take. The bucket may have been
// full in between, and then the whole cost would let more through than the limit.
func (b bucket) giveBack(s state, cost, taken, now int64) state {
	back := min(cost, b.most()) * b.interval
	if b.paused {
		s.full = max(0, s.full-back)
		return s
	}
	back = max(0, back-max(0, now-taken))
	s.full = max(s.full-back, min(s.full, now))
	return s
}

// missing is how far the bucket is from full; more than all that it holds if it is in debt.
func (b bucket) missing(s state, now int64) int64 {
	if b.paused {
		return s.full
	}
	return max(0, s.full-now)
}

func (b bucket) tokens(s state, now int64) float64 {
	if b.paused {
		return 0
	}
	return max(0, float64((b.burst-s.pending)*b.interval-b.missing(s, now))/float64(b.interval))
}

func (b bucket) used(s state, now int64) Used {
	return Used{Refill: time.Duration(b.missing(s, now))}
}

func (b bucket) adopt(s state, used Used, now int64) state {
	if !b.paused {
		// More cannot be missing: a call that is charged most finds the bucket full.
		s.full = now + min(max(0, int64(used.Refill)), b.most()*b.interval)
	}
	return s
}

func (b bucket) until(s state) int64 {
	if b.paused {
		return math.MaxInt64
	}
	return s.full
}

// inherit carries tokens over, cut to the new burst, and debts too.
func (b bucket) inherit(before algorithm, s state, how Inheritance, now int64) state {
	old := before.(bucket)
	full, oldFull := b.burst*b.interval, old.burst*old.interval
	missing := old.missing(s, now)
	switch {
	case missing > oldFull:
		s.full = full + scale(missing-oldFull, b.interval, old.interval, int64(maxSpan))
	case how == Empty: // pending calls are taken from it already
		s.full = max(0, full-s.pending*b.interval)
	case how == Full:
		s.full = 0
	default:
		s.full = full - scale(oldFull-missing, b.interval, old.interval, full)
	}
	if !b.paused {
		s.full += now
	}
	return s
}

// scale returns x × to / from, at most limit, without overflow.
func scale(x, to, from, limit int64) int64 {
	if from == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(x), uint64(to))
	if hi >= uint64(from) {
		return limit
	}
	q, _ := bits.Div64(hi, lo, uint64(from))
	if q > uint64(limit) {
		return limit
	}
	return int64(q)
}
