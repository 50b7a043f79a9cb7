package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/store"
)

var (
	// ErrImpossible is matched, with errors.Is, by the error for a cost above the
	// window's limit, which never fits. The error is a [*store.ArgumentError] whose
	// field is "cost".
	ErrImpossible = errors.New("can never be admitted")
	// ErrClosed is matched by the error of a call on a closed limiter or store. It
	// matches store.ErrUnavailable.
	ErrClosed = fmt.Errorf("%w: closed", store.ErrUnavailable)
)

// ReturnWithin is how soon a method of a [Store] returns once its context is done. It
// leaves room for a busy machine; a store that heeds its context needs microseconds.
const ReturnWithin = 250 * time.Millisecond

// Store keeps counts. Packages boltstore and redisstore have one each, and a [Limiter]
// without a Store counts in memory. A store is safe for concurrent use. Test your own
// with package storetest.
//
// Decide and Reset return within [ReturnWithin] once their context is done, even if the
// disk or the server behind them hangs. The limiter calls them directly and relies on
// it: a store that ignores its context blocks the limiter's callers.
type Store interface {
	// Decide reports whether there is room for a request. If there is and r.Record is
	// set, it records the request. Both are one atomic step, and a recorded charge is
	// as durable as the store promises before Decide returns.
	//
	// The request has passed [Request.Validate]. The result is that of [State.Decide].
	// A refusal is not an error. An error matches store.ErrUnavailable, or is that of
	// ctx. If ctx is done before the call, nothing is recorded.
	Decide(ctx context.Context, r Request) (Result, error)
	// Reset forgets what was charged to a key, in windows of all kinds. Its errors are
	// those of Decide.
	Reset(ctx context.Context, key string) error
	// Close releases the store's resources. Later calls fail.
	Close() error
}

// Request is one question to a [Store].
type Request struct {
	Key    string
	Window Window
	Cost   int
	Record bool // charge the cost if there is room
}

// Validate returns a [*store.ArgumentError] for a request that no store accepts: a key
// of 0 or more than [MaxKey] bytes, a window out of range (see [Window]; a [Limiter]
// fills in a limit of 0 and rounds the period first), or a cost below 1. For a cost above
// the limit, the error matches [ErrImpossible].
func (r Request) Validate() error {
	if err := validateKey(r.Key); err != nil {
		return err
	}
	if err := r.Window.validate(); err != nil {
		return err
	}
	switch {
	case r.Cost < 1:
		return invalid("cost", r.Cost, "at least 1")
	case r.Cost > r.Window.Limit:
		err := invalid("cost", r.Cost, fmt.Sprintf("at most the window's limit, %d", r.Window.Limit))
		err.Err = ErrImpossible
		return err
	}
	return nil
}

const wantKey = "1 to 1024 bytes"

func validateKey(key string) error {
	switch {
	case key == "":
		return invalid("key", "empty", wantKey)
	case len(key) > MaxKey:
		return invalid("key", fmt.Sprintf("%d bytes", len(key)), wantKey)
	}
	return nil
}

func invalid(field string, value any, want string) *store.ArgumentError {
	return &store.ArgumentError{Field: field, Value: fmt.Sprint(value), Want: want}
}

// Result is the answer to a charge or a peek.
type Result struct {
	// Limited is true if there is no room. Nothing was recorded then.
	Limited bool
	// Remaining is how much more there is room for now.
	Remaining int
	// ResetAt is when everything charged so far stops counting, on the store's wall
	// clock. It is the time of the decision if nothing counts.
	ResetAt time.Time
	// RetryAfter is the time until there is room for the cost, or 0 if there is room.
	RetryAfter time.Duration
	// Degraded is the store's error if the store was unavailable and Options.OnFailure
	// decided in its place. It matches store.ErrUnavailable.
	Degraded error
}
