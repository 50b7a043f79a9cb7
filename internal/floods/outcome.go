package floods

import (
	"time"

	"github.com/weirtg/weir/flood"
)

// maxDoublings bounds what a flood grows by when it is met again: 1 s, 2 s, … 64 s.
const maxDoublings = 6

// Released tells which waiting calls are let go together. The zero value: none.
type Released struct {
	// Scope is the widest of those that the call opens while others wait for them.
	Scope flood.Scope
	// Calls is how many wait for it. Some may still be held by another flood.
	Calls int
}

// Opens tells whom [Tracker.Passed] is about to let go. All of them return from [Tracker.Wait]
// at once, so a caller that paces them has to do so before.
func (t *Tracker) Opens(pass Pass) (released Released) {
	if t.size.Load() == 0 {
		return released
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	rs, n := t.opened(pass, t.clock.Now())
	for _, r := range rs[:n] {
		if r.waiting > 0 && r.scope > released.Scope {
			released = Released{Scope: r.scope, Calls: r.waiting}
		}
	}
	return released
}

// opened returns the records that end if the call comes through: the first n of rs.
func (t *Tracker) opened(pass Pass, now time.Time) (rs [maxCovering]*record, n int) {
	all, m := t.find(pass.Call)
	for _, r := range all[:m] {
		switch {
		case pass.seq < r.since: // sent before the flood: says nothing about it
		case r.kind == flood.SlowMode && r.waiting > 0:
		case r.inferred || r.left(now) <= 0:
			rs[n] = r
			n++
		}
	}
	return rs, n
}

// Passed notes that the call came through: any answer that is not a flood. What
// it proves open is open at once: a call that went first lets the others go, and
// a call that was sent after the flood which led to a wider scope takes the
// widening back. In slow mode a message proves that the next one has to wait, so
// there the others go on one by one.
//
// Passed returns the floods that were taken back before their deadline.
func (t *Tracker) Passed(pass Pass) (refuted []flood.Record) {
	if t.size.Load() == 0 && t.history.atRest.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.passed(pass)
	if len(t.records) == 0 {
		return nil
	}
	for _, k := range [...]key{pass.Call.guessedKey(), pass.Call.accountKey()} {
		if pass.seq > t.through[k] {
			t.through[k] = pass.seq
		}
	}
	now := t.clock.Now()
	rs, n := t.opened(pass, now)
	for _, r := range rs[:n] {
		if r.left(now) > 0 {
			refuted = append(refuted, r.public())
			t.history.disproved(r.method)
		}
		t.journal.ended(r, now)
		t.remove(r)
		t.wake(r.key)
	}
	t.leave(pass)
	if n > 0 {
		t.sweep(now)
	}
	return refuted
}

// Abandon notes that the call ended without an answer: it was cancelled, its
// connection was cut, or it was never sent. If it was a probe, another call
// goes first now. With a pass that is spent, or with the zero Pass, Abandon does nothing.
func (t *Tracker) Abandon(pass Pass) {
	if pass.probe == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(pass)
}

func (t *Tracker) leave(pass Pass) {
	if pass.probe == 0 {
		return
	}
	rs, n := t.find(pass.Call)
	for _, r := range rs[:n] {
		if r.probe == pass.probe {
			r.probe = 0
			t.schedule(r)
			t.wake(r.key)
		}
	}
}

// Flooded records a flood that the server answered the call with. It returns what
// stands now, at the widest scope that the flood reaches, and what the flood says about limits.
// Nothing is recorded for a notice that is not [flood.Notice.Waitable]: the call then counts as
// abandoned, and the record has no Until.
//
// A FLOOD_WAIT in one chat is taken for the method's at once if floods of the method have
// proved to be those of all chats within the last 10 minutes. A call that is sent after it and
// comes through in another chat takes that back.
func (t *Tracker) Flooded(pass Pass, n flood.Notice) flood.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	// If the flood does not reach what the pass was to probe, another call probes it.
	defer t.leave(pass)
	c := pass.Call
	if !n.Waitable() {
		return flood.Record{DC: c.DC, Method: c.Method, Chat: c.Chat, Kind: n.Kind}
	}

	now := t.clock.Now()
	t.sweep(now) // a flood that is over is not continued by this one
	f := arrival{call: c, kind: n.Kind, now: now, wait: n.Wait, sent: pass.seq, seq: t.seq.Load() + 1, vague: n.Unnumbered}
	counts := c.counts(n, pass)
	f.whole = counts && t.history.widens(c, now)
	targets := t.reach(f)
	f.repeats = t.repeats(targets, pass, n, now)
	f.until = now.Add(heldFor(n, f.repeats))
	t.probeFlooded(pass, now)
	var pub flood.Record
	for _, to := range targets {
		wider := t.note(f, to) // the last is the widest
		wider.News = wider.News || pub.News
		wider.Again = later(pub.Again, wider.Until)
		pub = wider
	}
	if counts {
		t.weigh(&pub, c, now)
	}
	t.sweep(now)
	// In this order: a call that reads the new number without the lock sees the new size.
	t.seq.Store(f.seq)
	return pub
}

// arrival is a flood that has just come.
type arrival struct {
	call    Call
	kind    flood.Kind
	now     time.Time
	wait    time.Duration // as the server said it
	until   time.Time
	sent    uint64 // floods recorded when the call was
	seq     uint64
	repeats int
	vague   bool // without a number
	whole   bool // the method is known to be limited as a whole
}

// probeFlooded notes that the probe of a guess was flooded: the next one goes later.
func (t *Tracker) probeFlooded(pass Pass, now time.Time) {
	if pass.probe == 0 {
		return
	}
	rs, n := t.find(pass.Call)
	for _, r := range rs[:n] {
		if r.inferred && r.probe == pass.probe {
			r.probed++
			r.nextProbe = now.Add(probeAfter(r.probed))
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// repeats is how often in a row the flood was met again, this time included. It was if
// the call went first after the deadline; for want of a number, any call that was sent
// after the flood will do. Calls that were on the wire are not one time more: thirty
// file parts flooded together are one flood.
func (t *Tracker) repeats(targets []target, pass Pass, n flood.Notice, now time.Time) int {
	if !n.Unnumbered && (n.Kind == flood.SlowMode || n.Kind == flood.PremiumWait) {
		return 0
	}
	repeats := 0
	for _, to := range targets {
		if r := t.records[to.key]; r != nil {
			x := r.repeats
			if pass.probe != 0 && pass.probe == r.probe && r.served(now) || n.Unnumbered && pass.seq >= r.since {
				x++
			}
			repeats = max(repeats, x)
		}
	}
	return min(repeats, maxCount)
}

// served reports whether the wait is over as the server said it, and not as a guess cut it.
func (r *record) served(now time.Time) bool {
	return r.left(now) <= 0 && (!r.inferred || !r.longest.After(r.until))
}

// heldFor is how long the flood holds calls back. A wait that proved too short is
// lengthened by more each time, but never more than doubled; one without a number has
// nothing but this.
func heldFor(n flood.Notice, repeats int) time.Duration {
	if n.Unnumbered {
		return flood.MinWait << min(repeats, maxDoublings)
	}
	if repeats == 0 {
		return n.Wait
	}
	return n.Wait + min(n.Wait, flood.MinWait<<min(repeats-1, maxDoublings))
}

// note brings one record up to date with the flood.
func (t *Tracker) note(f arrival, to target) flood.Record {
	r := t.records[to.key]
	if r == nil {
		r = t.add(to.key)
	}
	if to.widens {
		r.hits, r.why = to.hits, to.why
	}
	r.hits = min(r.hits+1, maxCount)
	r.repeats, r.vague = f.repeats, f.vague
	until := f.until
	if !to.most.IsZero() && to.most.Before(until) {
		until = to.most
	}
	// A guess that stands keeps its probe.
	fresh := r.left(f.now) <= 0 || to.widens
	if fresh || !r.inferred {
		r.probe = 0
	}
	if to.widens {
		r.probed = 0
	}
	if !to.most.Equal(r.until) { // else it tells nothing new
		r.longest = later(r.longest, later(f.until, to.longest))
	}
	if fresh {
		r.nextProbe = f.now.Add(probeAfter(r.probed))
	}
	news := until.Sub(r.until) >= flood.MinWait
	if until.After(r.until) {
		r.until, r.wait = until, until.Sub(f.now)
		r.kind, r.owner, r.restored = f.kind, f.call, false
		switch {
		case to.widens:
			r.since = to.since
		case fresh || !r.inferred:
			r.since = f.seq
		}
		t.journal.changed(r.key)
	}
	t.schedule(r)
	t.index(r, f.now)
	t.wake(r.key)

	pub := r.public()
	pub.News = news
	pub.Widened = to.widens
	return pub
}
