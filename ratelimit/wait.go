package ratelimit

import (
	"context"
	"time"

	"github.com/gotd/td/clock"
)

// lateness is the longest delay of a timer or goroutine that is made up for: the call is
// charged for the time when it was due. The bound keeps a machine that wakes from a long
// sleep from sending many calls at once.
const lateness = int64(10 * time.Millisecond)

// wait queues a call until it is admitted or fails. It is entered with the lock held and
// returns without it.
//
// A waiter acts in its own goroutine. Others only wake it: when it becomes the head of a
// queue, when a limit changes, and when the limiter closes. The exception is grantLocked.
// Either way a done context takes nothing, and an admitted call wakes the next, which keeps
// the order.
func (l *Limiter) wait(ctx context.Context, lane lane, pending bool, cost int64, gates []Gate) error {
	w := newWaiter(ctx, lane, cost, l.last, gates)
	w.pending = pending
	err := l.doneLocked(ctx)
	if err == nil && !l.freeLocked(w) {
		err = l.fullLocked(lane, cost, gates)
		if err == nil && !w.content(ctx) {
			err = l.hopelessLocked(ctx, l.refusalLocked(lane, cost, gates))
		}
	}
	for now := l.last; err == nil && !w.granted; now = l.nowLocked() {
		at := l.advanceLocked(w, now)
		if at == nil {
			err = l.admitLocked(w, now)
			continue
		}
		if l.freeLocked(w) {
			break // it passes without a charge
		}
		head := at.line.head() == at
		if head && !w.content(ctx) {
			// Only a head can tell how long it will be; those behind wait for their turn.
			if err = l.hopelessLocked(ctx, at.line.refuse(at.price(), l.last)); err != nil {
				break
			}
		}
		line, timer := at.line, l.armLocked(at, head)
		l.mu.Unlock()

		received := w.sleep(timer)

		l.mu.Lock()
		w.heard(received)
		if timer != nil {
			line.disarm(at, timer)
		}
		if w.granted {
			break // even if the context is done by now: it was not then
		}
		err = l.doneLocked(ctx)
	}
	l.leaveLocked(w)
	l.mu.Unlock()
	return err
}

// sleep returns when there is a reason to look again, and whether it has received the signal.
func (w *waiter) sleep(timer clock.Timer) (received bool) {
	var fired <-chan time.Time
	if timer != nil {
		fired = timer.C()
	}
	done := w.ctx.Done()
	if fired == nil && done == nil { // which takes half the time
		<-w.woken
		return true
	}
	select {
	case <-w.woken:
		return true
	case <-fired:
	case <-done:
	}
	return false
}

// doneLocked returns why nobody may be admitted any more, if so.
func (l *Limiter) doneLocked(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.closed {
		return ErrClosed
	}
	return nil
}

// content reports whether the call waits for as long as it takes and its cost fits. Then
// the length of the wait need not be computed.
func (w *waiter) content(ctx context.Context) bool {
	if _, ok := ctx.Deadline(); ok {
		return false
	}
	for i := range w.places {
		if p := &w.places[i]; p.price().need > p.gate.set.capacity {
			return false
		}
	}
	return true
}

// hopelessLocked returns an error if the wait in refused is useless.
func (l *Limiter) hopelessLocked(ctx context.Context, refused RefusedError) error {
	if refused.Reason == ErrImpossible {
		return refused.asError()
	}
	deadline, ok := ctx.Deadline()
	if !ok || refused.Wait == 0 || deadline.Sub(l.clock.Now()) > refused.Wait {
		return nil
	}
	refused.Reason = ErrDeferred
	return refused.asError()
}

// admitLocked admits a waiter that stands first at all its gates and finds room, if the
// store agrees.
func (l *Limiter) admitLocked(w *waiter, now int64) error {
	if l.shared != nil {
		return l.askLocked(w)
	}
	w.takeAt(w.due(now), now)
	return nil
}

// advanceLocked moves the waiter as far as it gets. It returns the place where it
// has to wait, or nil if there is room for it at each gate.
func (l *Limiter) advanceLocked(w *waiter, now int64) *place {
	for i := range w.places {
		p := &w.places[i]
		if p.line == nil {
			p.gate.set.line(p.gate.key).join(p, now)
		}
		if p.line.head() != p || !p.line.ready(p.price().need, now) {
			// A turn that was lost or a limit that was cut may close a gate that it
			// had passed.
			p.retreat(now)
			return p
		}
	}
	return nil
}

// grantLocked admits a waiter that is first at all its gates and finds room, in the
// goroutine that gave tokens back. The waiter keeps its places until it wakes and passes
// on the rest itself, so that the next cannot return before it.
func (l *Limiter) grantLocked(w *waiter, now int64) {
	if l.shared == nil && !w.granted && l.doneLocked(w.ctx) == nil && w.open(now) {
		w.takeAt(w.due(now), now)
	}
}

// open reports whether the waiter stands first at all its gates and finds room.
func (w *waiter) open(now int64) bool {
	for i := range w.places {
		if p := &w.places[i]; p.line == nil || p.line.head() != p || !p.line.ready(p.price().need, now) {
			return false
		}
	}
	return true
}

// due is when a waiter that is first at all its gates can be admitted, or could have been:
// when it had come, the call ahead had left and the tokens were there.
func (w *waiter) due(now int64) int64 {
	due := w.since
	for i := range w.places {
		p := &w.places[i]
		due = max(due, p.line.news, p.line.due(p.price().need, now))
	}
	return due
}

// takeAt charges a waiter at all its gates for the time when it was due. Charged at the time
// of a late timer, every delay would lower the rate.
func (w *waiter) takeAt(due, now int64) {
	w.granted, w.at = true, max(due, now-lateness)
	for i := range w.places {
		p := &w.places[i]
		if w.pending && !p.line.set.atBegin {
			p.line.state.pending += p.price().pending
			continue
		}
		p.line.state = p.line.set.algorithm.take(p.line.state, p.price().charge, w.at, now)
		p.line.late, p.line.lateAt = now-w.at, now
	}
}

// armLocked sets the gate's timer for a head that waits for room. A call further
// back, one at a paused gate, or one that waits for pending calls sleeps until it is woken.
func (l *Limiter) armLocked(at *place, head bool) clock.Timer {
	line := at.line
	if !head || line.set.paused || line.blocked(at.price().need) {
		return nil
	}
	d := time.Duration(line.due(at.price().need, l.last) - l.last)
	if line.timer == nil {
		line.timer = l.clock.Timer(d)
	} else {
		line.timer.Reset(d)
	}
	return line.timer
}

// disarm stops the timer after a sleep on it. If the sleeper has lost its turn meanwhile, it
// may have taken the timer or the signal of the new head, which has to look again.
func (l *line) disarm(at *place, timer clock.Timer) {
	clock.StopTimer(timer)
	if head := l.head(); head != nil && head != at {
		head.waiter.wake()
	}
}

func newWaiter(ctx context.Context, lane lane, cost, now int64, gates []Gate) *waiter {
	w := &waiter{
		ctx: ctx, lane: lane, cost: cost, since: now,
		places: make([]place, len(gates)), woken: make(chan struct{}, 1),
	}
	for i, g := range gates {
		w.places[i].waiter, w.places[i].gate = w, g
	}
	return w
}

// leaveLocked takes a waiter out of all queues, admitted or not.
func (l *Limiter) leaveLocked(w *waiter) {
	at := w.at
	if !w.granted {
		at = l.nowLocked()
	}
	for i := range w.places {
		w.places[i].leave(at, w.granted)
	}
}
