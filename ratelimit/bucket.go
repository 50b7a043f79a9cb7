package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// lateness is how late a timer may fire and still be made up for: the cost is
// then charged at the time that was due. A machine that slept longer starts
// again from now, or it would wake with a debt of calls to send at once.
const lateness = int64(10 * time.Millisecond)

// bucket is a token bucket reckoned in nanoseconds: instead of a number of
// tokens that has to be refilled, it keeps the one moment at which it is full.
// Taking a token moves that moment one interval into the future, and the passing
// of time is the refill. Nothing is ever added up, so nothing drifts.
//
// All times are nanoseconds since the limiter's start.
type bucket struct {
	limit    Limit
	interval int64 // what one token takes to refill, rounded up; never 0
	full     int64 // when the bucket is full
	frozen   int64 // while paused: what was missing when the pause began
}

func newBucket(l Limit) bucket { return bucket{limit: l, interval: interval(l)} }

func interval(l Limit) int64 {
	if l.Paused() {
		return int64(time.Second) // a unit to keep the tokens in; no time passes in a pause
	}
	return max(1, int64(math.Ceil(float64(time.Second)/l.Rate)))
}

func (b *bucket) capacity() int64 { return int64(b.limit.Burst) * b.interval }

// missing is how far the bucket is from full.
func (b *bucket) missing(now int64) int64 {
	if b.limit.Paused() {
		return b.frozen
	}
	return max(0, b.full-now)
}

// due is when the bucket has room for cost on top of what is ahead of it. It may
// lie in the past. The bucket must not be paused.
func (b *bucket) due(cost int64) int64 {
	if cost > math.MaxInt64/4/b.interval {
		return math.MaxInt64 / 2 // a queue of more than a lifetime
	}
	return b.full + cost*b.interval - b.capacity()
}

func (b *bucket) ready(cost, now int64) bool {
	return !b.limit.Paused() && b.due(cost) <= now && cost <= int64(b.limit.Burst)
}

func (b *bucket) take(cost, at int64) { b.full = max(b.full, at) + cost*b.interval }

// giveBack undoes a take. What the bucket has refilled since then stays; above
// full it spills over.
func (b *bucket) giveBack(cost int64) {
	if b.limit.Paused() {
		b.frozen = max(0, b.frozen-cost*b.interval)
		return
	}
	b.full -= cost * b.interval
}

func (b *bucket) tokens(now int64) float64 {
	if b.limit.Paused() {
		return 0
	}
	return max(0, float64(b.capacity()-b.missing(now))/float64(b.interval))
}

// set changes the limit. The tokens in the bucket stay, cut to the new burst.
func (b *bucket) set(l Limit, now int64) {
	had := max(0, b.capacity()-b.missing(now)) // tokens × the old interval
	next := bucket{limit: l, interval: interval(l)}
	missing := next.capacity() - scale(had, next.interval, b.interval, next.capacity())
	if l.Paused() {
		next.frozen = missing // nothing refills until the pause ends
	}
	next.full = now + missing
	*b = next
}

// scale returns x × to / from, at most limit, without overflow.
func scale(x, to, from, limit int64) int64 {
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
