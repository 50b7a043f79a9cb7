package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxRate is the highest rate that a gate takes, in tokens a second: above it a
// token would be worth less than a nanosecond.
const MaxRate = 1e9

// maxSpan bounds the time that an empty bucket takes to fill, and a window. It
// keeps every sum of times far from the end of an int64.
const maxSpan = 100 * 365 * 24 * time.Hour

// Rule is what a gate lets through: a [Limit] (a token bucket) or a [Window]. There
// are no others.
type Rule interface {
	// Validate returns a [*LimitError] that names the first field that is out of
	// range, or nil.
	Validate() error
	// Paused reports whether the rule lets nothing through.
	Paused() bool
	// String returns the rule in words, such as "20/s burst 30".
	String() string

	algorithm(*Limiter) algorithm
}

// Limit is a token bucket: it refills at Rate up to Burst.
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

// Paused implements [Rule].
func (l Limit) Paused() bool { return l.Rate == 0 || l.Burst == 0 }

// String implements [Rule].
func (l Limit) String() string {
	rate := l.Rate
	if rate >= 0.01 { // one that was learned has 16 digits
		rate = math.Round(rate*1000) / 1000
	}
	return fmt.Sprintf("%s/s burst %d", strconv.FormatFloat(rate, 'f', -1, 64), l.Burst)
}

// Validate implements [Rule].
func (l Limit) Validate() error {
	switch {
	case math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate < 0 || l.Rate > MaxRate:
		return &LimitError{Field: "rate", Value: l.Rate, Want: fmt.Sprintf("a number from 0 (paused) to %.0f, in tokens a second", MaxRate)}
	case l.Burst < 0 || l.Burst > math.MaxInt32:
		return &LimitError{Field: "burst", Value: float64(l.Burst), Want: fmt.Sprintf("a whole number from 0 (paused) to %d", math.MaxInt32)}
	case !l.Paused() && float64(l.Burst)/l.Rate > maxSpan.Seconds():
		return &LimitError{Field: "rate", Value: l.Rate, Want: fmt.Sprintf("one that fills a burst of %d within 100 years", l.Burst)}
	}
	return nil
}

// WindowKind says where a window begins.
type WindowKind uint8

const (
	// Sliding counts what passed in the Period before now, exactly: a call makes
	// room again when it is Period old, not sooner and not later. It remembers up
	// to Limit times.
	Sliding WindowKind = iota
	// Aligned counts from the last multiple of Period since the Unix epoch, as
	// "per calendar day in UTC". Two windows' worth may pass in a row.
	Aligned
	// FirstHit counts from the first call after the last window's end.
	FirstHit
)

// String returns "sliding", "aligned" or "from the first hit".
func (k WindowKind) String() string {
	switch k {
	case Sliding:
		return "sliding"
	case Aligned:
		return "aligned"
	case FirstHit:
		return "from the first hit"
	default:
		return fmt.Sprintf("WindowKind(%d)", k)
	}
}

// maxWindow bounds the memory of a sliding window, which keeps a time for each
// call.
const maxWindow = 1 << 20

// MinPeriod is the shortest period of a window. One below it is most likely a number that was
// meant as seconds.
const MinPeriod = time.Millisecond

// Window lets Limit through in each Period. A burst through a token bucket can
// break a rule like "20 in a minute"; a window keeps it. Limit 0 pauses.
type Window struct {
	// Limit is the most that passes in a period, from 0 to 1,048,576.
	Limit int
	// Period is from [MinPeriod] to 100 years.
	Period time.Duration
	// Kind is Sliding unless set.
	Kind WindowKind
}

// Paused implements [Rule].
func (w Window) Paused() bool { return w.Limit == 0 }

// String implements [Rule].
func (w Window) String() string { return fmt.Sprintf("%d in %s, %s", w.Limit, w.Period, w.Kind) }

// Validate implements [Rule].
func (w Window) Validate() error {
	switch {
	case w.Limit < 0 || w.Limit > maxWindow:
		return &LimitError{Field: "limit", Value: float64(w.Limit), Want: fmt.Sprintf("a whole number from 0 (paused) to %d", maxWindow)}
	case w.Period < MinPeriod || w.Period > maxSpan:
		return &LimitError{Field: "period", Value: w.Period.Seconds(), Want: "seconds from 0.001 to 100 years (in Go, time.Second and its like)"}
	case w.Kind > FirstHit:
		return &LimitError{Field: "kind", Value: float64(w.Kind), Want: "Sliding, Aligned or FirstHit"}
	}
	return nil
}

// LimitError tells which number of a rule is out of range and what would be in it.
// Match it with errors.As.
type LimitError struct {
	Gate  string  // the gate's name, "" where it has none yet
	Field string  // "rate" or "burst"; "limit", "period" or "kind"; "change"
	Value float64 // what was given
	Want  string  // what would be right
}

// Error names the gate, the field, its value and what would be right.
func (e *LimitError) Error() string {
	if e.Field == "change" {
		return fmt.Sprintf("%s: the change does not fit: want %s", e.Gate, e.Want)
	}
	field := e.Field
	if e.Gate != "" {
		field = e.Gate + "." + field
	}
	return fmt.Sprintf("%s is %v: want %s", field, e.Value, e.Want)
}
