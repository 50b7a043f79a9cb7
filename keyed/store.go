package keyed

import (
	"context"
	"time"
)

// Store keeps what was charged. Package keyed has one in memory ([NewMemory]), package
// boltstore one in a file, package redisstore one on a Redis server. It is safe for
// concurrent use, and passes the suite of package storetest.
type Store interface {
	// Decide says whether there is room for a request, and records it if there is and
	// the request wants it, in one step that no other decision can come between. What
	// it has returned from outlives what the store promises to outlive.
	//
	// The request has been checked by [Request.Validate]. A refusal is no error. An
	// error matches store.ErrUnavailable or is that of ctx.
	Decide(ctx context.Context, r Request) (Result, error)
	// Reset forgets what was charged to a key, in all windows.
	Reset(ctx context.Context, key string) error
	// Close frees what the store holds. Calls that come later fail.
	Close() error
}

// Request is what a store is asked.
type Request struct {
	Key    string
	Window Window
	Cost   int
	Record bool // charge it if there is room
}

// Result is what a store says.
type Result struct {
	// Limited: there is no room, and nothing was recorded.
	Limited bool
	// Remaining is how much more there is room for now.
	Remaining int
	// ResetAt is when nothing of what was charged counts any more; the time of the
	// decision if nothing does now.
	ResetAt time.Time
	// RetryAfter is how long it takes until there is room for the cost; 0 if there is.
	RetryAfter time.Duration
	// Degraded is not nil if the store was unavailable and the decision was made
	// without it, as the policy says. It matches store.ErrUnavailable.
	Degraded error
}
