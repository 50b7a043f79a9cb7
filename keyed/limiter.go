package keyed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

// DefaultTimeout is how long a [Limiter] waits for its store unless it is told
// otherwise: as long as a person does not notice.
const DefaultTimeout = 100 * time.Millisecond

// Options says how a [Limiter] is made. The zero value counts in memory.
type Options struct {
	// Store keeps what is charged. It is a [Memory] unless set. A store that is set is
	// closed by who has opened it, after the limiter.
	Store Store
	// OnFailure is what becomes of a decision when the store is unavailable: it is
	// refused with an error (store.Closed, which is the default), admitted and not
	// counted (store.Open), or made by a store in memory (store.Local). What is
	// counted in memory meanwhile stays there when the store is back.
	OnFailure store.Policy
	// Timeout is how long the store has for an answer, [DefaultTimeout] unless set. A
	// later answer is a failure, though what it tells of may have been recorded.
	Timeout time.Duration
	// Clock is what the store in memory goes by. It is the system's unless set.
	Clock clock.Clock
	// OnError, if set, is told of each failure of the store, in the goroutine that
	// asked, before the policy is followed.
	OnError func(error)
}

// Limiter counts what is charged to keys. It is safe for concurrent use.
type Limiter struct {
	store   Store
	memory  *Memory // store, if it is one that cannot block
	local   *Memory // what decides under store.Local
	own     bool    // store was made here, and is closed here
	policy  store.Policy
	timeout time.Duration
	onError func(error)
	closed  atomic.Bool
	clock   clock.Clock
	lost    atomic.Int32 // calls of the store that nobody waits for any more
	turns   turns
}

// New returns a limiter. The error is a [*store.ArgumentError] about the options.
func New(o Options) (*Limiter, error) {
	switch {
	case !o.OnFailure.Valid():
		return nil, &store.ArgumentError{
			Field: "OnFailure", Value: o.OnFailure.String(), Want: "store.Closed, store.Open or store.Local",
		}
	case o.Timeout < 0:
		return nil, &store.ArgumentError{
			Field: "Timeout", Value: o.Timeout.String(), Want: fmt.Sprintf("more than 0, or 0 for %v", DefaultTimeout),
		}
	case o.Timeout == 0:
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	l := &Limiter{
		store: o.Store, own: o.Store == nil,
		policy: o.OnFailure, timeout: o.Timeout, onError: o.OnError, clock: o.Clock,
	}
	if l.own {
		l.store = NewMemory(MemoryOptions{Clock: o.Clock})
	}
	l.memory, _ = l.store.(*Memory)
	if o.OnFailure == store.Local {
		l.local = NewMemory(MemoryOptions{Clock: o.Clock})
	}
	return l, nil
}

// Charge records one use of a key if its window has room for it, and says so.
//
// No room is no error: Result.Limited is true then, and nothing is recorded. It blocks
// for as long as the store takes, at most Options.Timeout, and not for room. An error
// is one of
//
//   - a [*store.ArgumentError] about the key, the window or the cost, which for a cost
//     that no window of that limit can ever hold matches [ErrImpossible];
//   - one that matches [store.ErrUnavailable], if the store has failed and the policy
//     is store.Closed, or the limiter is closed ([ErrClosed]);
//   - the context's.
//
// With all of them Result.Limited is true, so that a caller who looks no further
// refuses.
func (l *Limiter) Charge(ctx context.Context, key string, w Window) (Result, error) {
	return l.decide(ctx, key, w, 1, true)
}

// ChargeN is Charge for a use that counts as many: all of them or none.
func (l *Limiter) ChargeN(ctx context.Context, key string, w Window, cost int) (Result, error) {
	return l.decide(ctx, key, w, cost, true)
}

// Peek says what Charge would, and records nothing.
func (l *Limiter) Peek(ctx context.Context, key string, w Window) (Result, error) {
	return l.decide(ctx, key, w, 1, false)
}

// Reset forgets what was charged to a key, in windows of all kinds. When the store
// fails it returns an error that matches [store.ErrUnavailable], whatever the policy.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	// The key alone is looked at.
	if err := (Request{Key: key, Window: Window{Limit: 1, Period: MinPeriod}, Cost: 1}).Validate(); err != nil {
		return err
	}
	if err := l.usable(ctx); err != nil {
		return err
	}
	if l.local != nil {
		if err := l.local.Reset(ctx, key); err != nil {
			return err
		}
	}
	_, err := l.ask(ctx, func(ctx context.Context) (Result, error) { return Result{}, l.store.Reset(ctx, key) })
	if err != nil {
		return l.failed(ctx, "reset", err)
	}
	return nil
}

// Close ends the limiter: calls that come later fail with [ErrClosed]. It does not
// wait for those that go on, and does not close Options.Store.
func (l *Limiter) Close() error {
	l.closed.Store(true)
	if l.local != nil {
		_ = l.local.Close() // which has no errors
	}
	if l.own {
		return l.store.Close()
	}
	return nil
}

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
	var result Result
	var err error
	if l.memory != nil {
		result, err = l.memory.Decide(ctx, r)
	} else {
		result, err = l.ask(ctx, func(ctx context.Context) (Result, error) { return l.store.Decide(ctx, r) })
	}
	if err == nil {
		return result, nil
	}
	err = l.failed(ctx, "decide", err)
	if !errors.Is(err, store.ErrUnavailable) {
		return Result{Limited: true}, err
	}
	switch l.policy {
	case store.Open:
		return Result{Remaining: r.Window.Limit, ResetAt: l.clock.Now(), Degraded: err}, nil
	case store.Local:
		result, failed := l.local.Decide(ctx, r)
		result.Limited = result.Limited || failed != nil
		result.Degraded = err
		return result, failed
	default:
		return Result{Limited: true, Degraded: err}, err
	}
}

// failed says what an error of the store is about, and tells OnError. The error is the
// context's, and no failure, if the caller has given up.
func (l *Limiter) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	err = fmt.Errorf("keyed: %s: %w", doing, err)
	if l.onError != nil {
		l.onError(err)
	}
	return err
}

// maxLost bounds the goroutines that a store which never answers can hold.
const maxLost = 1024

// ask calls a store that may not heed its context, and does not wait for it longer
// than it may take.
func (l *Limiter) ask(ctx context.Context, call func(context.Context) (Result, error)) (Result, error) {
	if l.lost.Load() >= maxLost {
		return Result{}, fmt.Errorf("%d calls are still unanswered", maxLost)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	var (
		result Result
		err    error
		over   atomic.Bool // set by who is first: the answer, or the one who does not wait for it
	)
	answered := make(chan struct{})
	go func() {
		defer cancel()
		r, e := call(ctx)
		if !over.CompareAndSwap(false, true) {
			l.lost.Add(-1)
			return
		}
		result, err = r, e
		if e != nil && ctx.Err() != nil {
			err = l.noAnswer() // it has heeded its context, which has no more to say
		}
		close(answered)
	}()
	select {
	case <-answered:
		return result, err
	case <-ctx.Done():
	}
	if over.CompareAndSwap(false, true) {
		l.lost.Add(1)
		return Result{}, l.noAnswer()
	}
	<-answered
	return result, err
}

func (l *Limiter) noAnswer() error { return fmt.Errorf("no answer within %v", l.timeout) }
