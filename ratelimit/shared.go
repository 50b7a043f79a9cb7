package ratelimit

import (
	"context"
	"time"
)

// Shared keeps the state of gates for all processes of an account. A limiter that has
// one ([Options.Shared]) asks it for each call that it could admit by itself. Package
// redisstore has one; it is safe for concurrent use.
type Shared interface {
	// Take charges every gate or none, in one round trip, and tells what it found at
	// each, in the order of the charges. admitted is false if a gate had no room, and
	// then nothing was charged. It returns within some 100 ms, or when ctx is done; its
	// errors match store.ErrUnavailable, and then it may have charged or not.
	Take(ctx context.Context, charges []Charge) (admitted bool, found []Found, err error)
	// GiveBack undoes a Take that was admitted just now. It never fills a bucket beyond
	// its burst.
	GiveBack(ctx context.Context, charges []Charge) error
}

// Charge is what a call takes at one gate.
type Charge struct {
	Gate string // the name of the gate, or of its set
	Key  uint64 // which one of its set; 0 for a single gate
	Rule Rule   // not paused
	Cost int    // at most what the rule holds
	// Used is what the asking process itself knows to be used of the gate: of a bucket,
	// how long it takes to be full again; of a window, how many calls count in it now.
	// The store takes the gate to be used at least so much: after it was unavailable, or
	// has lost its data, there is no burst.
	Used Used
}

// Used is how much of a gate is used.
type Used struct {
	Refill time.Duration // buckets: until it is full
	Count  int           // windows: calls that count now
}

// Found is what a gate looked like.
type Found struct {
	// Wait is until there will be room for the cost, 0 if there is. It counts those of
	// other processes that came earlier.
	Wait time.Duration
	// Used is after the charge.
	Used Used
}
