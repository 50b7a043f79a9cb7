package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/store"
)

// These bounds are for a store that does not answer. One that is a [Patient] has its own.
const (
	askTime      = 500 * time.Millisecond
	giveBackTime = 100 * time.Millisecond
)

// longestPause bounds the pause between two tries of a store that is unavailable. It is short,
// because until then calls fail or pass without a limit.
const longestPause = time.Second

// askLocked asks the store about a waiter that is first at all its gates and finds room in
// this process's view. It lets go of the lock meanwhile. The waiter keeps its turn, so at
// most one call of each queue asks. The question ignores the context: the answer is needed
// to know what was charged, and calls in a hurry have to notice an outage too.
//
// Afterwards the waiter is granted, or has to look again, or has failed.
func (l *Limiter) askLocked(w *waiter) error {
	attempt, lost := l.health.Begin()
	if lost != nil {
		return l.aloneLocked(w, lost)
	}
	charges := w.chargesLocked(l.last)
	rules := make([]uint64, len(w.places))
	for i := range w.places {
		p := &w.places[i]
		p.line.asking, rules[i] = p, p.line.set.changes
	}
	l.mu.Unlock()

	asking, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), l.askTime)
	admitted, found, err := l.shared.Take(asking, charges)
	cancel()
	if err == nil && len(found) != len(charges) {
		err = fmt.Errorf("%w: %d answers to %d charges", store.ErrUnavailable, len(found), len(charges))
	}
	admitted = admitted && err == nil

	l.mu.Lock()
	if attempt.End(err) && l.policy == store.FailOpen {
		l.wakeAllLocked() // they pass now
	}
	now := l.nowLocked()
	for i := range w.places {
		p := &w.places[i]
		p.line.asking = nil
		if head := p.line.head(); head != p { // it came meanwhile, in the other lane
			head.waiter.wake()
		}
	}
	changed := false // the rules, meanwhile
	for i := range w.places {
		changed = changed || rules[i] != w.places[i].line.set.changes
	}
	done := l.doneLocked(w.ctx)
	if admitted && (done != nil || changed && !w.open(now)) {
		l.mu.Unlock()
		l.giveBack(charges)
		l.mu.Lock()
		return done
	}
	switch {
	case done != nil:
		return done
	case err == nil && admitted:
		w.takeAt(min(now, w.due(now)), now)
		w.by = account
	case err == nil:
	case l.policy == store.FailLocal && !w.open(now):
		return nil // another's turn, or other rules
	default:
		return l.aloneLocked(w, err)
	}
	for i := range w.places {
		if p := &w.places[i]; rules[i] == p.line.set.changes {
			p.line.see(found[i], admitted, now)
		}
	}
	if !admitted && !changed && w.open(now) { // no gate was named
		w.places[0].line.closedUntil = now + int64(time.Millisecond)
	}
	return nil
}

// maxClosed is the longest time for which an answer of the store closes a gate. Then the
// store is asked again, so that a damaged number does not close a gate for years.
const maxClosed = time.Hour

// see adopts the store's view of a gate.
func (l *line) see(found Found, admitted bool, now int64) {
	if b, ok := l.set.algorithm.(bucket); ok { // others took what this process did not
		l.set.others += float64(int64(found.Used.Refill)-b.missing(l.state, now)) / float64(b.interval)
	}
	l.state = l.set.algorithm.adopt(l.state, found.Used, now)
	if !admitted && found.Wait > 0 {
		l.closedUntil = now + min(int64(found.Wait), int64(maxClosed))
	}
}

// aloneLocked decides about a waiter that finds room, without the store, which has failed
// with err.
func (l *Limiter) aloneLocked(w *waiter, err error) error {
	switch l.policy {
	case store.FailOpen:
		w.granted, w.at = true, l.last
	case store.FailLocal:
		w.takeAt(w.due(l.last), l.last)
		w.by = process
	default:
		return w.unavailable(err)
	}
	return nil
}

// freeLocked reports whether a call passes at once and is not counted: the store is
// unavailable, that opens the gates, and they are not paused.
func (l *Limiter) freeLocked(w *waiter) bool {
	if l.policy != store.FailOpen || !l.lost() {
		return false
	}
	for i := range w.places {
		if s := w.places[i].gate.set; s.paused || w.places[i].price().need > s.capacity {
			return false
		}
	}
	return true
}

// lost reports whether the store is unavailable.
func (l *Limiter) lost() bool {
	_, err := l.health.Lost()
	return err != nil
}

// unavailable is the error of a waiter that needed the store. It names the narrowest gate.
func (w *waiter) unavailable(err error) error {
	if !errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("gate %s: %w", w.places[0].gate.set.name, err)
}

// chargesLocked is what a waiter that stands at all its gates asks for.
func (w *waiter) chargesLocked(now int64) []Charge {
	charges := make([]Charge, len(w.places))
	for i := range w.places {
		p := &w.places[i]
		s := p.line.set
		charges[i] = Charge{
			Gate: s.name, Key: p.line.key, Rule: s.rule, Cost: int(p.price().charge),
			Used: s.algorithm.used(p.line.state, now),
		}
	}
	return charges
}

// giveBack undoes a charge in the store, if that answers in time.
func (l *Limiter) giveBack(charges []Charge) {
	if len(charges) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	_ = l.shared.GiveBack(ctx, charges) // time refills the rest
}

// refundLocked gives a call's payment at each gate back to the store, unless that is
// unavailable. It lets go of the lock meanwhile. It has to come before the refund in this
// process, which makes the next call ask.
func (l *Limiter) refundLocked(gates []Gate, paid func(i int) int64) {
	if l.lost() {
		return
	}
	var charges []Charge
	for i, g := range gates {
		s, key := g.set, g.key
		if s.paused { // the store knows no paused gates
			continue
		}
		if s.keyed {
			key = s.resolve(key)
		}
		charges = append(charges, Charge{Gate: s.name, Key: key, Rule: s.rule, Cost: int(paid(i))})
	}
	l.mu.Unlock()
	l.giveBack(charges)
	l.mu.Lock()
}

// trySharedLocked admits a call without a wait, except for one answer of the store. The
// call keeps its turn meanwhile.
func (l *Limiter) trySharedLocked(cost int64, gates []Gate) (payee, error) {
	now := l.nowLocked()
	w := newWaiter(context.Background(), background, cost, now, gates)
	defer l.leaveLocked(w)
	free := l.freeLocked(w)
	if !readyLocked(cost, gates, now) || l.advanceLocked(w, now) != nil {
		if free {
			return nobody, nil
		}
		return nobody, l.refusalLocked(background, cost, gates).asError()
	}
	if err := l.askLocked(w); err != nil {
		return nobody, err
	}
	if w.granted {
		return w.by, nil
	}
	var worst RefusedError
	for i := range w.places {
		p := &w.places[i]
		if refused := p.line.refuse(p.price(), l.last); refused.Wait >= worst.Wait {
			worst = refused
		}
	}
	return nobody, worst.asError()
}
