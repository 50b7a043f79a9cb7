package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// MaxRate is the highest rate that a gate takes, in tokens a second: above it a
// token would be worth less than a nanosecond.
const MaxRate = 1e9

// maxFill bounds the time that an empty bucket takes to fill. It keeps every sum
// of times far from the end of an int64.
const maxFill = 100 * 365 * 24 * time.Hour

// Limit is what a gate lets through.
//
// A limit with Rate 0 or Burst 0 pauses its gate: nothing is admitted, not even
// what the bucket still holds, and calls wait until the limit is changed.
type Limit struct {
	// Rate is the refill in tokens a second, from 0 to [MaxRate]. The time of one
	// token is rounded up to a whole nanosecond.
	Rate float64
	// Burst is how many tokens the bucket holds at most, and so how many can be
	// taken at once after a pause. It starts full.
	Burst int
}

// Paused reports whether the limit lets nothing through.
func (l Limit) Paused() bool { return l.Rate == 0 || l.Burst == 0 }

// String returns the limit as "20/s burst 30".
func (l Limit) String() string { return fmt.Sprintf("%g/s burst %d", l.Rate, l.Burst) }

// Validate returns a [*LimitError] that names the first field that is out of
// range, or nil.
func (l Limit) Validate() error {
	switch {
	case math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate < 0 || l.Rate > MaxRate:
		return &LimitError{Field: "rate", Value: l.Rate, Want: fmt.Sprintf("a number from 0 (paused) to %g, in tokens a second", MaxRate)}
	case l.Burst < 0 || l.Burst > math.MaxInt32:
		return &LimitError{Field: "burst", Value: float64(l.Burst), Want: fmt.Sprintf("a whole number from 0 (paused) to %d", math.MaxInt32)}
	case !l.Paused() && float64(l.Burst)/l.Rate > maxFill.Seconds():
		return &LimitError{Field: "rate", Value: l.Rate, Want: fmt.Sprintf("one that fills a burst of %d within 100 years", l.Burst)}
	}
	return nil
}

// LimitError tells which number of a limit is out of range and what would be in
// it. Match it with errors.As.
type LimitError struct {
	Gate  string  // the gate's name, "" where it has none yet
	Field string  // "rate" or "burst"
	Value float64 // what was given
	Want  string  // what would be right
}

func (e *LimitError) Error() string {
	field := e.Field
	if e.Gate != "" {
		field = e.Gate + "." + field
	}
	return fmt.Sprintf("%s is %v: want %s", field, e.Value, e.Want)
}

// Change names a new rate, a new burst, or both; what it does not name stays as
// it is. The zero Change changes nothing.
//
//	ratelimit.Rate(5)            // 5 tokens a second, the burst stays
//	ratelimit.Burst(10)          // holds 10 tokens, the rate stays
//	ratelimit.Rate(5).Burst(10)  // both
type Change struct {
	rate     float64
	burst    int
	hasRate  bool
	hasBurst bool
}

// Rate returns a Change to perSecond tokens a second; 0 pauses.
func Rate(perSecond float64) Change { return Change{}.Rate(perSecond) }

// Burst returns a Change to a bucket of tokens; 0 pauses.
func Burst(tokens int) Change { return Change{}.Burst(tokens) }

// Rate returns c with perSecond as its new rate.
func (c Change) Rate(perSecond float64) Change {
	c.rate, c.hasRate = perSecond, true
	return c
}

// Burst returns c with tokens as its new burst.
func (c Change) Burst(tokens int) Change {
	c.burst, c.hasBurst = tokens, true
	return c
}

// Apply returns l with what c names put in. It does not validate.
func (c Change) Apply(l Limit) Limit {
	if c.hasRate {
		l.Rate = c.rate
	}
	if c.hasBurst {
		l.Burst = c.burst
	}
	return l
}
