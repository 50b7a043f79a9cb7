package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// bucket is a token bucket reckoned in nanoseconds: instead of a number of
// tokens that has to be refilled, it keeps the one moment at which it is full.
// Taking a token moves that moment one interval into the future, and the passing
// of time is the refill. Nothing is ever added up, so nothing drifts.
//
// While it is paused no time passes for it, and the state holds what was missing
// when the pause began.
type bucket struct {
	interval int64 // what one token takes to refill, rounded up; never 0
	burst    int64
	paused   bool
}

func (l Limit) algorithm(*set) algorithm {
	b := bucket{burst: int64(l.Burst), paused: l.Paused()}
	if b.paused {
		b.interval = int64(time.Second) // a unit to keep the tokens in
	} else {
		b.interval = max(1, int64(math.Ceil(float64(time.Second)/l.Rate)))
	}
	return b
}

func (b bucket) capacity() int64 { return b.burst }

func (b bucket) due(s *state, cost, _ int64) int64 {
	beyond := cost - b.burst
	if beyond > math.MaxInt64/4/b.interval {
		return math.MaxInt64 / 2 // a queue of more than a lifetime
	}
	return s.at + beyond*b.interval
}

func (b bucket) take(s *state, cost, due, _ int64) { s.at = max(s.at, due) + cost*b.interval }

// giveBack takes off what the bucket has refilled since the take: whether it had
// spilled over by then nobody knows, and to give it twice would let through more than
// the limit.
func (b bucket) giveBack(s *state, cost, taken, now int64) {
	back := min(cost, b.burst) * b.interval
	if b.paused {
		s.at = max(0, s.at-back)
		return
	}
	back = max(0, back-max(0, now-taken))
	s.at = max(s.at-back, min(s.at, now))
}

// missing is how far the bucket is from full.
func (b bucket) missing(s *state, now int64) int64 {
	if b.paused {
		return s.at
	}
	return max(0, s.at-now)
}

func (b bucket) tokens(s *state, now int64) float64 {
	if b.paused {
		return 0
	}
	return max(0, float64(b.burst*b.interval-b.missing(s, now))/float64(b.interval))
}

func (b bucket) used(s *state, now int64) Used {
	return Used{Refill: time.Duration(b.missing(s, now))}
}

func (b bucket) adopt(s *state, used Used, now int64) {
	if !b.paused {
		s.at = now + min(max(0, int64(used.Refill)), b.burst*b.interval) // no more than all can be missing
	}
}

func (b bucket) forget(s *state, now int64) bool { return !b.paused && s.at <= now }

func (b bucket) inherit(before algorithm, s *state, how Inheritance, now int64) {
	old := before.(bucket)
	full, oldFull := b.burst*b.interval, old.burst*old.interval
	had := max(0, oldFull-old.missing(s, now)) // tokens × the old interval
	switch how {
	case Reset:
		had = full
	case Empty:
		had = 0
	case Proportional:
		had = scale(had, full, oldFull, full)
	case Additive:
		had = scale(had, b.interval, old.interval, math.MaxInt64/2) + (b.burst-old.burst)*b.interval
	default:
		had = scale(had, b.interval, old.interval, full)
	}
	s.at = full - min(max(0, had), full)
	if !b.paused {
		s.at += now
	}
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
