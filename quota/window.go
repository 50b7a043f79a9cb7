package quota

import (
	"fmt"
	"time"
)

// The bounds of a request.
const (
	MaxKey    = 1024    // bytes
	MaxLimit  = 1 << 20 // uses in a period
	MinPeriod = time.Millisecond
	MaxPeriod = 36525 * 24 * time.Hour // 100 years
)

// Kind is the way a window counts.
type Kind uint8

const (
	// Sliding counts the charges of the last Period, exactly. A charge counts until it
	// is Period old, to the microsecond.
	Sliding Kind = iota
	// Aligned starts a new count at each multiple of Period since the Unix epoch. A
	// Period of 24 h is the calendar day in UTC.
	Aligned
	// FirstHit starts a new count at the first charge after the last period has ended.
	FirstHit
	// Bucket is a token bucket. It holds Limit tokens and refills evenly, Limit tokens in
	// a Period.
	Bucket

	kinds = iota // the number of kinds
)

// String returns "sliding", "aligned", "first-hit" or "bucket".
func (k Kind) String() string {
	names := [...]string{"sliding", "aligned", "first-hit", "bucket"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Window is a limit on each key: Limit uses in a Period.
//
// A key has one count for each Kind, whatever the Limit and the Period. So a bot can
// change a limit and keep the count, but two rules of one kind ("3 a day" and "1 a
// minute") need two keys.
type Window struct {
	// Limit is from 1 to [MaxLimit]. 0 means 1.
	Limit int
	// Period is from [MinPeriod] to [MaxPeriod]. It is rounded up to whole
	// microseconds.
	Period time.Duration
	// Kind is Sliding by default.
	Kind Kind
}

// normal returns the window with defaults and rounding applied.
func (w Window) normal() Window {
	if w.Limit == 0 {
		w.Limit = 1
	}
	if part := w.Period % time.Microsecond; part > 0 {
		w.Period += time.Microsecond - part
	}
	return w
}

func (w Window) validate() error {
	switch {
	case w.Limit < 1 || w.Limit > MaxLimit:
		return invalid("window.limit", w.Limit, fmt.Sprintf("1 to %d", MaxLimit))
	case w.Period < MinPeriod || w.Period > MaxPeriod:
		return invalid("window.period", w.Period, fmt.Sprintf("%v to 100 years (%v)", MinPeriod, MaxPeriod))
	case w.Period%time.Microsecond != 0:
		return invalid("window.period", w.Period, "whole microseconds")
	case w.Kind >= kinds:
		return invalid("window.kind", w.Kind, "Sliding, Aligned, FirstHit or Bucket")
	}
	return nil
}
