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
	// then nothing was charged, and at least one gate has a Wait. It returns when ctx is
	// done, which is after 500 ms at the latest, or what a [Patient] says; its errors match store.ErrUnavailable, and then it may
	// have charged or not. No lock is held, and many may be under way, but never two of
	// one limiter about one gate.
	Take(ctx context.Context, charges []Charge) (admitted bool, found []Found, err error)
	// GiveBack undoes a Take that was admitted just now; Used is not given. It never
	// fills a bucket beyond its burst. ctx has a deadline of at most 100 ms, and an
	// error is ignored: time refills what does not come back.
	GiveBack(ctx context.Context, charges []Charge) error
}

// Patient is a Shared that says how long Take may wait for an answer, because its server is
// far away.
type Patient interface {
	Patience() time.Duration
}

// Charge is what a call takes at one gate.
type Charge struct {
	Gate string // the name of the gate, or of its set
	Key  uint64 // which one of its set; 0 for a single gate
	Rule Rule   // not paused
	// Cost is how much is charged. If it is more than the rule holds, as an album's at
	// the gate of its chat, the call passes when the bucket is full or the window is empty,
	// and is charged whole.
	Cost int
	// Used is what the asking process itself knows to be used of the gate: of a bucket,
	// how long it takes to be full again; of a window, how many of its own calls count in
	// it now. The store takes the gate to be used at least so much: after it was
	// unavailable, or has lost its data, there is no burst.
	//
	// It counts from when the last answer arrived, and so may be too much by what
	// was under way: up to a round trip of a bucket's time, and calls that have left the
	// window within it. A store that does not allow for that loses some of the rate.
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
	// other processes that came earlier. The process closes the gate for so long, and
	// then asks again.
	Wait time.Duration
	// Used is after the charge, or as it was found if there was none. Of a bucket the
	// process adopts it.
	Used Used
}
