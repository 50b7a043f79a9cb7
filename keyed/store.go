package keyed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/store"
)

// ErrImpossible is matched, with errors.Is, by the error for a cost that is above the
// window's limit: there will never be room for it. The error is a
// [*store.ArgumentError] whose field is "cost".
var ErrImpossible = errors.New("can never be admitted")

// Store keeps what was charged. Package keyed has one in memory ([NewMemory]), package
// boltstore one in a file, package redisstore one on a Redis server. It is safe for
// concurrent use, and passes the suite of package storetest.
type Store interface {
	// Decide says whether there is room for a request, and records it if there is and
	// the request wants it, in one step that no other decision can come between. What
	// it has returned from outlives what the store promises to outlive.
	//
	// The request has been checked by [Request.Validate]. What is to be decided is what
	// [State.Decide] does. A refusal is no error. An error matches
	// store.ErrUnavailable or is that of ctx, in which case nothing was recorded if ctx
	// was done before the call.
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

// Validate returns a [*store.ArgumentError] for what no store is asked: a key of no or
// of more than [MaxKey] bytes, a window out of its ranges (a limit of 0 and parts of a
// microsecond included, which a [Limiter] has replaced before), a cost below 1. That of
// a cost above the limit matches [ErrImpossible].
func (r Request) Validate() error {
	switch {
	case r.Key == "":
		return &store.ArgumentError{Field: "key", Value: "empty", Want: fmt.Sprintf("1 to %d bytes", MaxKey)}
	case len(r.Key) > MaxKey:
		return &store.ArgumentError{
			Field: "key", Value: fmt.Sprintf("%d bytes", len(r.Key)), Want: fmt.Sprintf("1 to %d bytes", MaxKey),
		}
	}
	if err := r.Window.validate(); err != nil {
		return err
	}
	switch {
	case r.Cost < 1:
		return &store.ArgumentError{Field: "cost", Value: fmt.Sprint(r.Cost), Want: "at least 1"}
	case r.Cost > r.Window.Limit:
		return &store.ArgumentError{
			Field: "cost", Value: fmt.Sprint(r.Cost),
			Want: fmt.Sprintf("at most the window's limit, %d", r.Window.Limit), Err: ErrImpossible,
		}
	}
	return nil
}

// Result is what a store says.
type Result struct {
	// Limited: there is no room, and nothing was recorded.
	Limited bool
	// Remaining is how much more there is room for now.
	Remaining int
	// ResetAt is when nothing of what was charged counts any more, on the store's wall
	// clock; the time of the decision if nothing does now.
	ResetAt time.Time
	// RetryAfter is how long it takes until there is room for the cost; 0 if there is.
	RetryAfter time.Duration
	// Degraded is not nil if the store was unavailable and the decision was made
	// without it, as the policy says. It matches store.ErrUnavailable.
	Degraded error
}
