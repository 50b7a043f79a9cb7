package keyed

import (
	"fmt"
	"time"

	"github.com/weirtg/weir/store"
)

// What a request may be.
const (
	MaxKey    = 1024    // bytes
	MaxLimit  = 1 << 20 // in a period
	MinPeriod = time.Millisecond
	MaxPeriod = 36525 * 24 * time.Hour // 100 years
)

// Kind says how a window counts.
type Kind uint8

const (
	// Sliding counts what was charged in the Period before now, exactly: a charge
	// makes room again when it is Period old, not sooner and not later.
	Sliding Kind = iota
	// Aligned counts from the last multiple of Period since the Unix epoch: a Period of
	// 24 h is the calendar day in UTC.
	Aligned
	// FirstHit counts from the first charge after the last window's end.
	FirstHit
	// Bucket is a token bucket: Limit at once, and refilled evenly, Limit in a Period.
	Bucket

	kinds = iota // how many there are
)

// String returns "sliding", "aligned", "first-hit" or "bucket".
func (k Kind) String() string {
	switch k {
	case Sliding:
		return "sliding"
	case Aligned:
		return "aligned"
	case FirstHit:
		return "first-hit"
	case Bucket:
		return "bucket"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Window is a limit for each key: Limit in each Period.
//
// What is charged to a key is kept for each Kind apart, and not for each Limit and
// Period: when a bot is started with another limit, what was charged still counts. So
// two rules of one kind ("3 a day" and "1 a minute") need two keys.
type Window struct {
	// Limit is the most in a period, from 1 to 1,048,576; 0 is 1.
	Limit int
	// Period is from [MinPeriod] to [MaxPeriod]. It is rounded up to whole
	// microseconds, which is what all times are reckoned in.
	Period time.Duration
	// Kind is Sliding unless set.
	Kind Kind
}

// normal fills in what was left out.
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
		return &store.ArgumentError{
			Field: "window.limit", Value: fmt.Sprint(w.Limit), Want: fmt.Sprintf("1 to %d", MaxLimit),
		}
	case w.Period < MinPeriod || w.Period > MaxPeriod:
		return &store.ArgumentError{
			Field: "window.period", Value: w.Period.String(), Want: fmt.Sprintf("%v to 100 years (%v)", MinPeriod, MaxPeriod),
		}
	case w.Period%time.Microsecond != 0:
		return &store.ArgumentError{Field: "window.period", Value: w.Period.String(), Want: "whole microseconds"}
	case w.Kind >= kinds:
		return &store.ArgumentError{
			Field: "window.kind", Value: w.Kind.String(), Want: "Sliding, Aligned, FirstHit or Bucket",
		}
	}
	return nil
}
