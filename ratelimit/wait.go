package ratelimit

import (
	"context"
	"time"

	"github.com/gotd/td/clock"
)

// wait queues a call and sees it through. It is entered with the lock held and
// returns without it.
//
// Everything that happens to a waiter happens in its own goroutine, here: the
// others only wake it, when it becomes the head of a queue, when a limit changes,
// or at the end. So no grant can cross a cancellation, and the one that is
// admitted wakes the next, which keeps the order.
func (l *Limiter) wait(ctx context.Context, cost int64, gates []*Gate) error {
	w := l.waiterLocked(cost, gates)
	err := l.doneLocked(ctx)
	if err == nil {
		err = l.hopelessLocked(ctx, l.refusalLocked(cost, gates))
	}
	for err == nil {
		at := l.advanceLocked(w)
		if at == nil {
			break // admitted
		}
		if g := at.gate; g.queue.head == at {
			// Only a head can tell how long it will be; those behind wait for their turn.
			if err = l.hopelessLocked(ctx, g.refusalLocked(0, cost, l.last)); err != nil {
				break
			}
		}
		timer := l.armLocked(at)
		l.mu.Unlock()

		var fired <-chan time.Time
		if timer != nil {
			fired = timer.C()
		}
		select {
		case <-fired:
		case <-w.woken:
		case <-ctx.Done():
		}

		l.mu.Lock()
		if timer != nil {
			clock.StopTimer(timer)
		}
		err = l.doneLocked(ctx)
	}
	l.leaveLocked(w)
	l.mu.Unlock()
	return err
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

// hopelessLocked returns an error if waiting for what refused says is in vain.
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

// advanceLocked moves the waiter as far as it gets. It returns the place where it
// has to wait, or nil when it was admitted.
func (l *Limiter) advanceLocked(w *waiter) *place {
	now := l.nowLocked()
	for i := range w.places {
		p := &w.places[i]
		if !p.queued {
			p.gate.queue.push(p)
		}
		if p.gate.queue.head != p {
			return p
		}
		if !p.gate.bucket.ready(w.cost, now) {
			// A limit that was cut may close a gate that was passed: what is held
			// further on is let go, or a narrow gate would close a wide one.
			for j := i + 1; j < len(w.places); j++ {
				w.places[j].leaveLocked(now)
			}
			return p
		}
	}
	at := dueLocked(w, now)
	for i := range w.places {
		w.places[i].gate.bucket.take(w.cost, at)
		w.places[i].leaveLocked(at)
	}
	return nil
}

// dueLocked is when a waiter that can be admitted now could have been: it came,
// the one ahead had left and the tokens were there. Timers fire late and
// goroutines run late, and to charge it then keeps that from adding up to a lower
// rate.
func dueLocked(w *waiter, now int64) int64 {
	due := w.since
	for i := range w.places {
		g := w.places[i].gate
		due = max(due, g.news, g.bucket.due(w.cost))
	}
	if now-due > lateness {
		return now
	}
	return due
}

// armLocked sets the gate's timer for a head that waits for room. A call further
// back, or one at a paused gate, sleeps until it is woken.
func (l *Limiter) armLocked(at *place) clock.Timer {
	g := at.gate
	if g.queue.head != at || g.bucket.limit.Paused() {
		return nil
	}
	d := time.Duration(g.bucket.due(at.waiter.cost) - l.last)
	if g.timer == nil {
		g.timer = l.clock.Timer(d)
	} else {
		g.timer.Reset(d)
	}
	return g.timer
}

// waiterLocked takes a waiter off the free list: waiters come in storms, and a
// storm should not leave its weight in garbage.
func (l *Limiter) waiterLocked(cost int64, gates []*Gate) *waiter {
	var w *waiter
	if n := len(l.free); n > 0 {
		w, l.free = l.free[n-1], l.free[:n-1]
	} else {
		w = &waiter{woken: make(chan struct{}, 1)}
	}
	w.cost, w.since = cost, l.nowLocked()
	for _, g := range gates {
		w.places = append(w.places, place{waiter: w, gate: g})
	}
	return w
}

// maxFree bounds the memory that a storm of waiters leaves behind.
const maxFree = 1024

// leaveLocked takes a waiter that may not have been admitted out of all queues.
func (l *Limiter) leaveLocked(w *waiter) {
	now := l.nowLocked()
	for i := range w.places {
		w.places[i].leaveLocked(now)
	}
	if len(l.free) == maxFree {
		return
	}
	select {
	case <-w.woken: // a signal that came too late
	default:
	}
	clear(w.places)
	w.places = w.places[:0]
	l.free = append(l.free, w)
}

// leaveLocked gives up the place and wakes whoever is first now.
func (p *place) leaveLocked(at int64) {
	if !p.queued {
		return
	}
	first := p.gate.queue.head == p
	p.gate.queue.remove(p)
	if first {
		p.gate.wakeHeadLocked(at)
	}
}
