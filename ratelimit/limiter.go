package ratelimit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// Options of a [Limiter]. The zero value is ready for use.
type Options struct {
	// Clock tells the time and makes the timers. nil means clock.System. Inside a
	// testing/synctest bubble clock.System is virtual by itself.
	Clock clock.Clock
}

// Limiter owns the gates of one account. It is safe for concurrent use.
//
// One lock covers all its gates, since a call is charged in all of them or in
// none. It is held for the reckoning only, never while a call waits.
type Limiter struct {
	clock  clock.Clock
	system bool      // clock is the system's, which can be read at less cost
	start  time.Time // what the nanoseconds of all buckets count from

	mu     sync.Mutex
	last   int64 // the latest time read: time does not go back
	gates  []*Gate
	free   []*waiter // waiters to use again
	closed bool
}

// New returns a limiter without gates.
func New(opts Options) *Limiter {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	return &Limiter{
		clock:  opts.Clock,
		system: opts.Clock == clock.System,
		start:  opts.Clock.Now(),
	}
}

// NewGate adds a gate with a full bucket. The name is for errors and statistics;
// the error is a [*LimitError].
func (l *Limiter) NewGate(name string, limit Limit) (*Gate, error) {
	if err := validate(name, limit); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &Gate{name: name, limiter: l, bucket: newBucket(limit)}
	l.gates = append(l.gates, g)
	return g, nil
}

func validate(name string, limit Limit) error {
	err := limit.Validate()
	if e, ok := err.(*LimitError); ok {
		e.Gate = name
	}
	return err
}

// Update changes the limits of several gates in one step, or none of them if one
// is bad. Tokens are carried over, cut to the new burst, and heads that wait at
// the gates reckon again at once. It does not block.
//
// The error is a [*LimitError].
func (l *Limiter) Update(changes map[*Gate]Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for g, c := range changes {
		if err := validate(g.name, c.Apply(g.bucket.limit)); err != nil {
			return err
		}
	}
	now := l.nowLocked()
	for g, c := range changes {
		g.bucket.set(c.Apply(g.bucket.limit), now)
		g.wakeHeadLocked(now)
	}
	return nil
}

// Stats returns the state of every gate at one moment, in the order in which they
// were made.
func (l *Limiter) Stats() []GateStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	stats := make([]GateStats, len(l.gates))
	for i, g := range l.gates {
		stats[i] = g.statsLocked(now)
	}
	return stats
}

// Congestion is that of the worst gate, from 0 (all idle) to 1 (one is
// saturated). It does not block or allocate, so a loop may poll it.
func (l *Limiter) Congestion() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	worst := 0.0
	for _, g := range l.gates {
		worst = max(worst, g.statsLocked(now).Congestion())
	}
	return worst
}

// Close answers every call that waits with [ErrClosed], and every later one too.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, g := range l.gates {
		for p := g.queue.head; p != nil; p = p.next {
			p.waiter.wake()
		}
	}
}

// Acquire takes cost tokens from each of the gates, which are named narrowest
// first and must belong to this limiter. It blocks until all of them have room at
// once. Without waiters and with room it neither blocks nor allocates.
//
// A nil error means that the tokens are taken; with any other nothing is. It
// returns
//
//   - the context's error if it was done before the tokens were taken;
//   - a [*RefusedError] with ErrDeferred, at once, if the context's deadline comes
//     before there would be room; deadlines are read on the limiter's clock;
//   - a [*RefusedError] with ErrImpossible if cost is more than a gate's burst;
//   - [ErrClosed] after Close.
//
// At a paused gate it waits for the pause to end.
func (l *Limiter) Acquire(ctx context.Context, cost int, gates ...*Gate) error {
	if err := checkCost(cost); err != nil {
		return err
	}
	l.mu.Lock()
	if !l.closed && ctx.Err() == nil && l.takeLocked(int64(cost), gates) {
		l.mu.Unlock()
		return nil
	}
	return l.wait(ctx, int64(cost), gates)
}

// Try is Acquire for a call that does not want to wait: where Acquire would
// block, it returns a [*RefusedError] with ErrRejected. It never passes a call
// that waits.
func (l *Limiter) Try(cost int, gates ...*Gate) error {
	if err := checkCost(cost); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.takeLocked(int64(cost), gates) {
		return nil
	}
	return l.refusalLocked(int64(cost), gates).asError()
}

// Refund gives back what Acquire or Try took, for a call that was not sent after
// all. Giving back more than was taken fills the buckets, never beyond Burst.
func (l *Limiter) Refund(cost int, gates ...*Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	for _, g := range gates {
		g.bucket.giveBack(int64(cost))
		g.wakeHeadLocked(now)
	}
}

func checkCost(cost int) error {
	if cost < 1 || cost > math.MaxInt32 {
		return fmt.Errorf("cost is %d: want a whole number from 1 to %d", cost, math.MaxInt32)
	}
	return nil
}

// nowLocked reads the clock. It is read under the lock: a time that was read
// before waiting for the lock is old, and would refill the bucket twice.
func (l *Limiter) nowLocked() int64 {
	var now time.Duration
	if l.system {
		now = time.Since(l.start) // reads the monotonic clock alone
	} else {
		now = l.clock.Now().Sub(l.start)
	}
	l.last = max(l.last, int64(now))
	return l.last
}

// takeLocked admits a call that finds nobody waiting and room at each gate.
func (l *Limiter) takeLocked(cost int64, gates []*Gate) bool {
	now := l.nowLocked()
	for _, g := range gates {
		if g.queue.head != nil || !g.bucket.ready(cost, now) {
			return false
		}
	}
	for _, g := range gates {
		g.bucket.take(cost, now)
	}
	return true
}

// refusalLocked tells a call that did not get through which gate will hold it
// longest.
func (l *Limiter) refusalLocked(cost int64, gates []*Gate) RefusedError {
	var worst RefusedError
	now := l.nowLocked()
	ahead := int64(0)
	for _, g := range gates {
		// Whoever is ahead at a narrow gate will be ahead at the wide one as well.
		ahead = max(ahead, g.queue.cost)
		refused := g.refusalLocked(ahead, cost, now)
		if refused.Wait == 0 {
			return refused
		}
		if refused.Wait > worst.Wait {
			worst = refused
		}
	}
	return worst
}
