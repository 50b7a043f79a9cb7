package keyed

import "time"

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
)

// Window is a limit for each key: Limit in each Period.
type Window struct {
	// Limit is the most in a period, from 1 to 1,048,576; 0 is 1.
	Limit int
	// Period is from 1 ms to 100 years.
	Period time.Duration
	// Kind is Sliding unless set.
	Kind Kind
}
