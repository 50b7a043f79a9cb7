package quota

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

// What is used unless Options say otherwise.
const (
	defaultTimeout = 100 * time.Millisecond // a person does not notice it
	defaultMaxKeys = 2 << 20                // some 450 MB
)

// Options configure a [Limiter]. The zero value counts in memory.
type Options struct {
	// Store keeps the counts. nil counts in memory. The limiter does not close the
	// store; close it after the limiter.
	Store Store
	// OnFailure decides when the store is unavailable. store.FailClosed, the default,
	// refuses with an error. store.FailOpen admits and counts nothing. store.FailLocal counts
	// in this process's memory, and those counts stay there when the store is back.
	OnFailure store.Policy
	// Timeout is how long the store may take for an answer. 0 means 100 ms. A store
	// that takes longer has failed, although it may have recorded the charge.
	Timeout time.Duration
	// MaxKeys bounds the keys counted in memory. 0 means 2,097,152. A charge to one
	// more is refused with an error that matches store.ErrUnavailable: forgetting an
	// older key instead would let a crowd of keys erase a user's count. A key takes
	// some 200 bytes and its own length, and in a sliding window 12 bytes more for each
	// charge that counts.
	MaxKeys int
	// Clock is the clock for counts in memory. nil is the system's clock.
	Clock clock.Clock
	// OnError, if set, is called with each error of the store, before OnFailure decides.
	// It runs on the goroutine of the call that failed.
	OnError func(error)
}

// Limiter counts what is charged to keys. It is safe for concurrent use.
type Limiter struct {
	store   Store
	memory  *memory // store itself, or what counts under store.FailLocal; else nil
	policy  store.Policy
	timeout time.Duration
	clock   clock.Clock
	onError func(error)
	closed  atomic.Bool
	turns   turns
}

// New returns a limiter. An error is a [*store.ArgumentError] that names the option.
func New(o Options) (*Limiter, error) {
	switch {
	case !o.OnFailure.Valid():
		return nil, invalid("OnFailure", o.OnFailure, "store.FailClosed, store.FailOpen or store.FailLocal")
	case o.Timeout < 0:
		return nil, invalid("Timeout", o.Timeout, fmt.Sprintf("more than 0, or 0 for %v", defaultTimeout))
	case o.MaxKeys < 0:
		return nil, invalid("MaxKeys", o.MaxKeys, fmt.Sprintf("at least 1, or 0 for %d", defaultMaxKeys))
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	l := &Limiter{store: o.Store, policy: o.OnFailure, timeout: o.Timeout, clock: o.Clock, onError: o.OnError}
	if o.Store == nil || o.OnFailure == store.FailLocal {
		l.memory = newMemory(o.Clock, o.MaxKeys)
	}
	if o.Store == nil {
		l.store = l.memory
	}
	return l, nil
}

// Charge records one use of a key if its window has room for it.
//
// A refusal is not an error: Result.Limited is true, and nothing is recorded. Charge
// does not wait for room. It blocks for as long as the store takes, at most
// Options.Timeout, and returns when ctx is done. An error is one of
//
//   - a [*store.ArgumentError] about the key, the window or the cost, which matches
//     [ErrImpossible] for a cost above the window's limit;
//   - one that matches [store.ErrUnavailable], if the store failed and OnFailure is
//     store.FailClosed, if memory is full, or if the limiter is closed ([ErrClosed]);
//   - that of ctx.
//
// With any error Result.Limited is true, so a caller who ignores the error refuses.
func (l *Limiter) Charge(ctx context.Context, key string, w Window) (Result, error) {
	return l.decide(ctx, key, w, 1, true)
}

// ChargeN is Charge for a use that costs more than 1. It records all of the cost or
// none.
func (l *Limiter) ChargeN(ctx context.Context, key string, w Window, cost int) (Result, error) {
	return l.decide(ctx, key, w, cost, true)
}

// Peek returns what Charge would return, without recording anything. Remaining does not
// include the use that Charge would record.
func (l *Limiter) Peek(ctx context.Context, key string, w Window) (Result, error) {
	return l.decide(ctx, key, w, 1, false)
}

// Reset forgets what was charged to a key, in windows of all kinds. It blocks as Charge
// does. If the store fails, the error matches [store.ErrUnavailable] under any OnFailure.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := validateKey(key); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return err
	}
	if l.memory != nil {
		if err := l.memory.Reset(ctx, key); err != nil || l.inMemory() {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.store.Reset(bounded, key); err != nil {
		return l.failed(ctx, "reset", err)
	}
	return nil
}

// Close ends the limiter: later calls fail with [ErrClosed]. It does not wait for calls
// in progress and does not close Options.Store. Its error is always nil.
func (l *Limiter) Close() error {
	l.closed.Store(true)
	if l.memory != nil {
		return l.memory.Close()
	}
	return nil
}

// inMemory reports whether there is no store but memory.
func (l *Limiter) inMemory() bool { return l.store == Store(l.memory) }

func (l *Limiter) usable(ctx context.Context) error {
	if l.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

func (l *Limiter) decide(ctx context.Context, key string, w Window, cost int, record bool) (Result, error) {
	r := Request{Key: key, Window: w.normal(), Cost: cost, Record: record}
	if err := r.Validate(); err != nil {
		return Result{Limited: true}, err
	}
	if err := l.usable(ctx); err != nil {
		return Result{Limited: true}, err
	}
	result, err := l.ask(ctx, r)
	if err == nil {
		return result, nil
	}
	err = l.failed(ctx, "decide", err)
	switch {
	case !errors.Is(err, store.ErrUnavailable):
		return Result{Limited: true}, err
	case l.policy == store.FailOpen:
		return Result{Remaining: r.Window.Limit, ResetAt: l.clock.Now(), Degraded: err}, nil
	case l.policy == store.FailLocal && !l.inMemory():
		result, failed := l.memory.Decide(ctx, r)
		result.Limited = result.Limited || failed != nil
		result.Degraded = err
		return result, failed
	default:
		return Result{Limited: true, Degraded: err}, err
	}
}

func (l *Limiter) ask(ctx context.Context, r Request) (Result, error) {
	if l.inMemory() {
		return l.memory.Decide(ctx, r) // which needs no timeout
	}
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.store.Decide(bounded, r)
}

// failed returns the error for the caller and calls OnError. If the caller has given up,
// the error is that of ctx, and the store has not failed.
func (l *Limiter) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// Callers must not take it for the error of their own context.
		err = fmt.Errorf("%w: no answer in time (the timeout is %v): %v", store.ErrUnavailable, l.timeout, err)
	case !errors.Is(err, store.ErrUnavailable):
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	err = fmt.Errorf("quota: %s: %w", doing, err)
	if l.onError != nil {
		l.onError(err)
	}
	return err
}
