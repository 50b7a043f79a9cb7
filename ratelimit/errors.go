package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

// The reasons of a refusal, for errors.Is.
var (
	// ErrRejected says that there was no room and no wait was wanted, or nobody
	// knows how long it would be because the gate is paused.
	ErrRejected = errors.New("rejected")
	// ErrDeferred says that there would be room, but only after the context's
	// deadline. [RefusedError.Wait] is how long it would take.
	ErrDeferred = errors.New("deferred")
	// ErrImpossible says that waiting does not help: the cost is more than the
	// gate's burst.
	ErrImpossible = errors.New("impossible")
	// ErrQueueFull says that as many calls wait at the gate as may.
	ErrQueueFull = errors.New("queue full")
)

// ErrClosed is what calls get from a limiter that was closed, those that wait in
// it included.
var ErrClosed = errors.New("closed")

// RefusedError is a call that was not admitted. It has cost nothing.
//
// Match the reason with errors.Is(err, ErrRejected), ErrDeferred, ErrImpossible or
// ErrQueueFull, and the details with errors.As. It matches no error of a context, not even
// when it is deferred: the context is not done. gotd's downloader repeats at once, without
// bound, a call whose error matches context.DeadlineExceeded while its context is not done.
type RefusedError struct {
	Reason error  // ErrRejected, ErrDeferred, ErrImpossible or ErrQueueFull
	Gate   string // name of the gate that had no room
	Limit  Rule   // its rule at the time
	Cost   int    // what the call would have cost
	// Wait is the time until there would be room, 0 when nobody knows. Where calls are
	// pending it is the least that it can be: if all of them were settled now.
	Wait    time.Duration
	Pending int // cost of the calls that are pending at the gate
}

// Error names the gate, its rule, the reason and the wait.
func (e *RefusedError) Error() string {
	switch {
	case e.Reason == ErrImpossible:
		return fmt.Sprintf("gate %s (%s): %v: a cost of %d never fits, raise the burst or split the work", e.Gate, e.Limit, e.Reason, e.Cost)
	case e.Reason == ErrDeferred:
		return fmt.Sprintf("gate %s (%s): not sent, %v: room in %s, after the deadline of its context", e.Gate, e.Limit, e.Reason, e.Wait)
	case e.Wait > 0:
		return fmt.Sprintf("gate %s (%s): %v: room in %s", e.Gate, e.Limit, e.Reason, e.Wait)
	default:
		return fmt.Sprintf("gate %s (%s): %v: paused", e.Gate, e.Limit, e.Reason)
	}
}

// asError moves the refusal to the heap, which only those that are returned need.
func (e RefusedError) asError() error { return &e }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }
