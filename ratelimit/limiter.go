package ratelimit

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

// Options of a [Limiter]. The zero value is ready for use.
type Options struct {
	// Clock tells the time and makes the timers. nil means clock.System. Inside a
	// testing/synctest bubble clock.System is virtual by itself.
	Clock clock.Clock

	// Shared keeps the state of all gates for several processes, see the package
	// documentation. nil limits this process alone.
	Shared Shared
	// OnFailure decides about a call while Shared is unavailable: [store.FailClosed],
	// the default, fails it with an error that matches [store.ErrUnavailable],
	// [store.FailOpen] admits it at once and counts nothing, [store.FailLocal] applies the limits
	// to this process alone. A paused gate stays paused in each case.
	OnFailure store.Policy
	// Reporter hears when Shared becomes unavailable and when it is back. It may be nil.
	Reporter *store.Reporter
}

// Limiter owns the gates of one account. It is safe for concurrent use.
//
// One lock covers all gates, because a call is charged at all of them or at none. It is
// never held while a call waits.
type Limiter struct {
	clock   clock.Clock
	system  bool      // clock is the system's, which can be read at less cost
	start   time.Time // what all times count from
	seed    maphash.Seed
	shared  Shared
	askTime time.Duration // of shared
	policy  store.Policy
	health  *store.Health // of shared

	mu     sync.Mutex
	last   int64 // the latest time read: time does not go back
	gates  []*set
	sets   []*set // the keyed ones
	closed bool
}

// New returns a limiter without gates.
func New(opts Options) *Limiter {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	patience := askTime
	if p, ok := opts.Shared.(Patient); ok {
		patience = p.Patience()
	}
	return &Limiter{
		askTime: patience,
		clock:   opts.Clock,
		system:  opts.Clock == clock.System,
		start:   opts.Clock.Now().Add(-1), // so that 0 can stand for never
		seed:    maphash.MakeSeed(),
		shared:  opts.Shared,
		policy:  opts.OnFailure,
		health: store.NewHealth(store.HealthOptions{
			Clock: opts.Clock, LongestPause: longestPause, Reporter: opts.Reporter,
		}),
	}
}

func named(gate string, err error) error {
	if e, ok := err.(*LimitError); ok {
		e.Gate = gate
	}
	return err
}

// Update changes the rules of several gates in one step, or none of them if one
// change is bad. [Change.Inherit] says what happens to the tokens. Calls that wait look
// at the new rules at once. A change of one gate of a set changes the whole set, and
// takes longer the more gates are remembered. Update does not block.
//
// The error joins a [*LimitError] for each change that is bad.
func (l *Limiter) Update(changes map[Gate]Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rules := make(map[Gate]Rule, len(changes))
	var errs []error
	for g, c := range changes {
		rule, err := c.Apply(g.set.rule)
		errs = append(errs, named(g.set.name, err))
		rules[g] = rule
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	now := l.nowLocked()
	for g, rule := range rules {
		g.set.change(rule, changes[g].inherit, now)
	}
	return nil
}

// Stats returns the state of every gate of [Limiter.NewGate] at one moment, in the
// order in which they were made.
func (l *Limiter) Stats() []GateStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	stats := make([]GateStats, len(l.gates))
	for i, s := range l.gates {
		stats[i] = s.single.stats(now)
	}
	return stats
}

// Congestion is that of the worst gate of [Limiter.NewGate], from 0 (all idle) to 1
// (one is saturated). It does not block or allocate, so a loop may poll it.
func (l *Limiter) Congestion() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	worst := 0.0
	for _, s := range l.gates {
		worst = max(worst, s.single.stats(now).Congestion())
	}
	return worst
}

// Close answers every call that waits with [ErrClosed], and every later one too.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wakeAllLocked()
}

func (l *Limiter) wakeAllLocked() {
	for _, s := range l.gates {
		s.single.wakeAll()
	}
	for _, s := range l.sets {
		for _, line := range s.busy {
			line.wakeAll()
		}
	}
}

func (l *line) wakeAll() {
	for _, q := range l.lanes {
		for p := q.head; p != nil; p = p.next {
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
//   - a [*RefusedError] with ErrQueueFull if too many wait already;
//   - [ErrClosed] after Close;
//   - with [Options.Shared], an error that matches [store.ErrUnavailable] if that was
//     needed and is unavailable.
//
// At a paused gate it waits for the pause to end. A context that is done between the
// taking of the tokens and the return changes nothing: they are the caller's, who can
// give them back with [Limiter.Refund].
func (l *Limiter) Acquire(ctx context.Context, cost int, gates ...Gate) error {
	return l.acquire(ctx, normal, false, cost, gates)
}

// AcquireBackground is Acquire for work that can wait. At each gate it lets calls of
// Acquire go first, even later ones, except every tenth time, so that it is not starved.
func (l *Limiter) AcquireBackground(ctx context.Context, cost int, gates ...Gate) error {
	return l.acquire(ctx, background, false, cost, gates)
}

// acquire takes the tokens, or leaves them pending where no store has charged them.
func (l *Limiter) acquire(ctx context.Context, lane lane, pending bool, cost int, gates []Gate) error {
	if err := l.check(cost, gates); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	switch {
	case l.closed || l.shared != nil:
		l.nowLocked()
	case l.takeLocked(pending, int64(cost), gates):
		l.mu.Unlock()
		return nil
	}
	return l.wait(ctx, lane, pending && l.shared == nil, int64(cost), gates)
}

// Try is Acquire for a call that does not want to wait: where Acquire would
// block, it returns a [*RefusedError] with ErrRejected. It never passes a call
// that waits, not even one in the background. It does not block, but with
// [Options.Shared] for one round trip to it, if nobody waits and there is room by what
// this process knows.
func (l *Limiter) Try(cost int, gates ...Gate) error {
	if err := l.check(cost, gates); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.tryLocked(false, int64(cost), gates)
	return err
}

func (l *Limiter) tryLocked(pending bool, cost int64, gates []Gate) (by payee, err error) {
	switch {
	case l.closed:
		return nobody, ErrClosed
	case l.shared != nil:
		return l.trySharedLocked(cost, gates)
	case l.takeLocked(pending, cost, gates):
		return process, nil
	}
	return nobody, l.refusalLocked(background, cost, gates).asError()
}

// justTaken is the time of a take that is undone at once.
const justTaken = math.MaxInt64

// Refund gives back the tokens that Acquire or Try has just taken, for a call that is not
// sent after all. It never fills a bucket beyond Burst. To give tokens back later, use a
// [Permit], which knows when they were taken: time may have refilled them already. With a
// cost or gates that Acquire would refuse as bad, Refund does nothing.
//
// With [Options.Shared] it gives them back to the store too, which takes up to 100 ms; if
// that fails, time refills them. Do not refund a call that passed while the store was
// unavailable: it has paid nothing there, and under [store.FailOpen] nothing at all.
func (l *Limiter) Refund(cost int, gates ...Gate) {
	if l.check(cost, gates) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared != nil {
		l.refundLocked(gates, func(i int) int64 { return gates[i].price(int64(cost)).charge })
	}
	now := l.nowLocked()
	for _, g := range gates {
		g.set.giveBack(g.key, g.price(int64(cost)).charge, justTaken, now)
	}
}

// nowLocked reads the clock. It has to be read under the lock: a time read before the wait
// for the lock is old, and the bucket would be refilled twice.
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
func (l *Limiter) takeLocked(pending bool, cost int64, gates []Gate) bool {
	now := l.nowLocked()
	if !readyLocked(cost, gates, now) {
		return false
	}
	for _, g := range gates {
		if p := g.price(cost); pending {
			g.set.begin(g.key, p, now)
		} else {
			g.set.take(g.key, p.charge, now)
		}
	}
	return true
}

// readyLocked reports whether nobody waits and there is room at each gate.
func readyLocked(cost int64, gates []Gate, now int64) bool {
	for _, g := range gates {
		if !g.set.ready(g.key, g.price(cost).need, now) {
			return false
		}
	}
	return true
}

// refusalLocked is the refusal of a newcomer by the gate that would hold it longest.
func (l *Limiter) refusalLocked(lane lane, cost int64, gates []Gate) RefusedError {
	now := l.nowLocked()
	var worst RefusedError
	var calls int64 // ahead at the gates so far
	known := true
	for _, g := range gates {
		st, line := g.set.peek(g.key)
		// A call that is ahead at a narrow gate will be ahead at the wide one as well.
		ahead, until := calls, int64(0)
		if line != nil {
			until = line.closedUntil
			queued, queuedCalls := line.ahead(lane)
			ahead, calls = max(ahead, queued), max(calls, queuedCalls)
		}
		refused := g.set.refusal(st, until, ahead, g.price(cost), now)
		switch {
		case refused.Reason == ErrImpossible: // whatever the others say
			return refused
		case refused.Wait == 0 && known: // paused
			worst, known = refused, false
		case known && refused.Wait > worst.Wait:
			worst = refused
		}
	}
	return worst
}

// fullLocked returns the refusal of a newcomer that finds too many waiting.
func (l *Limiter) fullLocked(lane lane, cost int64, gates []Gate) error {
	for _, g := range gates {
		most := g.set.maxWaiters
		if most == 0 {
			continue
		}
		if st, line := g.set.peek(g.key); line != nil && line.lanes[lane].len >= most {
			ahead, _ := line.ahead(lane)
			refused := g.set.refusal(st, line.closedUntil, ahead, g.price(cost), l.last)
			refused.Reason = ErrQueueFull
			return refused.asError()
		}
	}
	return nil
}
