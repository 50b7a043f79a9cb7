package floods

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/flood"
)

// grace is how much longer than its limit a call that sat out its wait may wait
// for the probe. Without it, a wait just as long as the threshold would be served and then
// given up all the same.
const grace = time.Second

// Pass is the leave to send one call. It is a small value; hand it back by
// exactly one of [Tracker.Passed], [Tracker.Flooded] and [Tracker.Abandon].
type Pass struct {
	// Waited is the time spent in [Tracker.Wait].
	Waited time.Duration
	// Call is what the pass is for. Only its Quiet and Retried may be changed.
	Call Call

	// Beyond 64 bytes, copying a pass costs every call half as much again as all that the
	// tracker does for it. Hence the short types.

	seq    uint64 // floods recorded when the call was sent: it is evidence about these
	probe  uint32 // not 0: the call is this probe; with beforeDeadline in it, of a guess
	sentAt moment // 0 where no flood of a chat at rest was known then
}

// beforeDeadline marks the number of a probe of a guess that stands.
const beforeDeadline = 1 << 31

// waiter is a call blocked in Wait.
type waiter struct {
	call Call
	wake chan struct{} // a token is left when something changed for the call
}

// Wait waits until no standing flood covers the call and returns the leave to
// send it. Without one it returns at once.
//
// limit is the longest time that this call may wait here, 0 for not at all. When
// what is left of a covering flood is longer, Wait refuses at once with a
// [*flood.WaitError], and so it does when ctx has a deadline that comes before the
// flood's: the call could not be sent anyway. A flood that arrives or grows while
// the call waits is judged in the same way, by what is left of limit.
//
// A wider scope that is a guess, see [flood.Record], and lasts longer than 10 s is probed now
// and then: limit is then compared with the time until the next probe.
//
// The probe is the one call that goes first, after a deadline or while a guess stands. The
// others wait, within their limit and a second more, until the probe has come through, which
// lets them all go (in slow mode, the next one); until it was flooded, which sets a new
// deadline; or until it ended without an answer or [flood.FirstTimeout] has passed, which makes
// another call the probe. A call that may not wait that long is refused with
// [flood.AnotherFirst].
//
// A done ctx ends the wait at once, with the context's error wrapped. A call that
// was refused or gave up has changed nothing.
func (t *Tracker) Wait(ctx context.Context, call Call, limit time.Duration) (Pass, error) {
	// In this order, see Flooded.
	if seq := t.seq.Load(); t.size.Load() == 0 && ctx.Err() == nil {
		return Pass{Call: call, seq: seq}, nil
	}
	limit = min(limit, math.MaxInt64-grace)
	if pass, decided, err := t.glance(ctx, call, limit); decided {
		return pass, err
	}
	return t.enter(ctx, call, limit)
}

// glance decides what changes nothing: that no flood concerns the call, or that one lasts
// longer than the call may wait. Many calls do it at a time, and none is parked. Were a
// thousand of them to be refused one by one, those that have to queue for the lock would
// fall behind all the others that are ready to run.
func (t *Tracker) glance(ctx context.Context, call Call, limit time.Duration) (pass Pass, decided bool, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	now := t.clock.Now()
	if t.stale(now) || ctx.Err() != nil {
		return pass, false, nil
	}
	rs, n := t.covering(call, now)
	if n == 0 {
		return t.let(call, nil, 0), true, nil
	}
	if h := holding(rs[:n], call, now); h.timed > limit {
		return pass, true, h.refuse(call, now, flood.KnownFlood)
	}
	return pass, false, nil
}

func (t *Tracker) enter(ctx context.Context, call Call, limit time.Duration) (Pass, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	start := t.clock.Now()
	if t.stale(start) {
		t.sweep(start)
	}
	var (
		w      *waiter
		satOut bool
		held   [maxCovering]*record
		nheld  int
	)
	for now := start; ; now = t.clock.Now() {
		rs, n := t.covering(call, now)
		// Only now: a record must not end because the only call that waited for
		// it is looking at it.
		for _, r := range held[:nheld] {
			if r.waiting--; r.waiting == 0 && t.records[r.key] == r {
				t.schedule(r)
			}
		}
		held, nheld = rs, n
		if err := ctx.Err(); err != nil {
			return Pass{}, fmt.Errorf("wait until %v may be sent: %w", call, err)
		}

		waited := max(0, now.Sub(start))
		h := holding(rs[:n], call, now)
		var block time.Duration
		switch {
		case h.timed > 0:
			block, satOut = h.timed, true
			if block > limit-waited {
				return Pass{}, h.refuse(call, now, flood.KnownFlood)
			}
			if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < block {
				return Pass{}, h.refuse(call, now, flood.ContextDeadline)
			}
		case h.answer > 0:
			if block = limit - waited; satOut {
				block += grace
			}
			if block <= 0 {
				return Pass{}, h.refuse(call, now, flood.AnotherFirst)
			}
			block = min(block, h.answer)
		default:
			return t.let(call, rs[:n], waited), nil
		}

		if w == nil {
			w = &waiter{call: call, wake: make(chan struct{}, 1)}
			defer t.waiters.Remove(t.waiters.PushBack(w))
		}
		for _, r := range rs[:n] {
			r.waiting++
		}
		t.block(ctx, w, block)
	}
}

// block gives up the lock until something changes for w, the time is over or ctx
// is done.
func (t *Tracker) block(ctx context.Context, w *waiter, d time.Duration) {
	timer := t.clock.Timer(d)
	t.mu.Unlock()
	defer t.mu.Lock()
	defer clock.StopTimer(timer)
	select {
	case <-w.wake:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// wake tells the calls that k covers to look again.
func (t *Tracker) wake(k key) {
	for e := t.waiters.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiter); k.covers(w.call) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// let makes the pass. What still stands is past its deadline or is to be probed: the
// call is the probe of each record that has none.
func (t *Tracker) let(call Call, rs []*record, waited time.Duration) Pass {
	p := Pass{Waited: waited, Call: call, seq: t.seq.Load()}
	if len(rs) == 0 {
		return p
	}
	now := t.clock.Now()
	rs = slices.DeleteFunc(rs, func(r *record) bool { return r.answerDue(now) > 0 })
	if len(rs) == 0 {
		return p
	}
	t.probes = t.probes%(beforeDeadline-1) + 1
	p.probe = t.probes
	if slices.ContainsFunc(rs, func(r *record) bool { return r.left(now) > 0 }) {
		p.probe |= beforeDeadline
	}
	for _, r := range rs {
		r.probe, r.probeUntil = p.probe, now.Add(flood.FirstTimeout)
		t.schedule(r)
	}
	return p
}

// hold is what keeps a call from being sent.
type hold struct {
	timed, answer time.Duration // until the last deadline or probe, and for the answer to a probe
	most          time.Duration // the longer of the two
	by            *record       // which makes it so
}

func holding(rs []*record, call Call, now time.Time) (h hold) {
	for _, r := range rs {
		wait := r.answerDue(now)
		if wait > 0 {
			if call.Inside {
				continue
			}
			h.answer = max(h.answer, wait)
		} else if wait = r.free(now); wait > 0 {
			h.timed = max(h.timed, wait)
		}
		if wait > h.most {
			h.most, h.by = wait, r
		}
	}
	return h
}

func (h hold) refuse(call Call, now time.Time, why flood.Reason) error {
	return &flood.WaitError{
		Method: call.Method, Chat: call.Chat, DC: call.DC,
		Kind: h.by.kind, Scope: h.by.scope, Wait: h.most, Until: now.Add(h.most), Reason: why,
	}
}

// Covered reports whether the call of the pass has to go back to [Tracker.Wait]
// after all, because a flood arrived since. Ask it last, when the call has all else that it
// needs. If it says yes, the pass is spent: a call that was the probe no longer is. It does not
// wait, and costs next to nothing when no flood arrived at all.
func (t *Tracker) Covered(call Call, pass Pass) bool {
	if t.seq.Load() == pass.seq {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	rs, n := t.covering(call, now)
	for _, r := range rs[:n] {
		if r.probe != 0 && r.probe == pass.probe || call.Inside && r.answerDue(now) > 0 {
			continue
		}
		t.leave(pass)
		return true
	}
	return false
}

// Start notes that the call is sent now. A call that comes through proves something
// about a flood only if it was sent after it; without Start the call counts as sent
// when Wait returned, which proves less.
func (t *Tracker) Start(pass *Pass) {
	pass.seq = t.seq.Load()
	if t.history.atRest.Load() > 0 {
		pass.sentAt = t.moment(t.clock.Now())
	}
}

// Probe reports whether the call goes first, after a deadline or while a guess stands. Others
// wait for its answer.
func (p Pass) Probe() bool { return p.probe != 0 }

// early reports whether the call is the probe of a guess that stands.
func (p Pass) early() bool { return p.probe&beforeDeadline != 0 }
