package flood

import "time"

// maxDoublings bounds what a flood grows by when it is met again: 1 s, 2 s, … 64 s.
const maxDoublings = 6

// Released tells which waiting calls are let go together. The zero value: none.
type Released struct {
	// Scope is the widest of those that the call opens while others wait for them.
	Scope Scope
	// Calls is how many wait for it. Some may still be held by another flood.
	Calls int
}

// Opens tells whom [Book.Passed] is about to let go. All of them return from [Book.Enter]
// at once, so who wants to pace them has to see to it before.
func (b *Book) Opens(pass Pass) (released Released) {
	if b.size.Load() == 0 {
		return released
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	rs, n := b.opened(pass, b.clock.Now())
	for _, r := range rs[:n] {
		if r.waiting > 0 && r.scope > released.Scope {
			released = Released{Scope: r.scope, Calls: r.waiting}
		}
	}
	return released
}

// opened returns the records that end if the call comes through: the first n of rs.
func (b *Book) opened(pass Pass, now time.Time) (rs [maxCovering]*record, n int) {
	all, m := b.find(pass.call)
	for _, r := range all[:m] {
		switch {
		case pass.seq < r.since: // sent before the flood: says nothing about it
		case r.kind == SlowMode && r.waiting > 0:
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
func (b *Book) Passed(pass Pass) (refuted []Record) {
	if b.size.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range [...]key{pass.call.guessedKey(), pass.call.accountKey()} {
		if pass.seq > b.through[k] {
			b.through[k] = pass.seq
		}
	}
	now := b.clock.Now()
	rs, n := b.opened(pass, now)
	for _, r := range rs[:n] {
		if r.left(now) > 0 {
			refuted = append(refuted, r.public())
		}
		b.journal.ended(r, now)
		delete(b.records, r.key)
		b.wake(r.key)
	}
	b.leave(pass)
	if n > 0 {
		b.sweep(now)
	}
	return refuted
}

// Left notes that the call ended without an answer: it was cancelled, its
// connection was cut, or it was never sent. If it was to go first, another call
// goes first now. To call it with a pass that is spent, or with the zero Pass,
// does nothing.
func (b *Book) Left(pass Pass) {
	if pass.probe == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(pass)
}

func (b *Book) leave(pass Pass) {
	if pass.probe == 0 {
		return
	}
	rs, n := b.find(pass.call)
	for _, r := range rs[:n] {
		if r.probe == pass.probe {
			r.probe = 0
			b.wake(r.key)
		}
	}
}

// Flooded records a flood that the server answered the call with and returns what
// stands now, at the widest scope that the flood reaches. Nothing is recorded for
// a notice that is not [Notice.Waitable]: the call then counts as one that left
// without an answer, and the Record has no Until.
func (b *Book) Flooded(pass Pass, n Notice) Record { return b.flooded(pass, n, false) }

// FloodedWhole is Flooded for a method that is known to be limited as a whole, such as by
// floods that have proven it before: a FLOOD_WAIT in one chat is then taken for the
// method's, and need not be met in a second chat first. A call that is sent after it and
// comes through in another chat takes that back as ever.
func (b *Book) FloodedWhole(pass Pass, n Notice) Record { return b.flooded(pass, n, true) }

func (b *Book) flooded(pass Pass, n Notice, whole bool) Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	// What the pass went first for and the flood does not reach goes to another.
	defer b.leave(pass)
	c := pass.call
	if !n.Waitable() {
		return Record{DC: c.DC, Method: c.Method, Chat: c.Chat, Kind: n.Kind}
	}

	now := b.clock.Now()
	b.sweep(now) // a flood that is over is not continued by this one
	f := arrival{call: c, kind: n.Kind, now: now, wait: n.Wait, sent: pass.seq, seq: b.seq.Load() + 1, vague: n.Unnumbered, whole: whole}
	targets := b.reach(f)
	f.repeats = b.repeats(targets, pass, n, now)
	f.until = now.Add(n.hold(f.repeats))
	b.looked(pass, now)
	var pub Record
	for _, t := range targets {
		wider := b.note(f, t) // the last is the widest
		wider.News = wider.News || pub.News
		wider.Again = later(pub.Again, wider.Until)
		pub = wider
	}
	b.sweep(now)
	// In this order: who reads the new number without the lock sees the new size.
	b.seq.Store(f.seq)
	return pub
}

// arrival is a flood that has just come.
type arrival struct {
	call    Call
	kind    Kind
	now     time.Time
	wait    time.Duration // as the server said it
	until   time.Time
	sent    uint64 // floods recorded when the call was
	seq     uint64
	repeats int
	vague   bool // without a number
	whole   bool // the method is known to be limited as a whole
}

// looked notes that a call which looked whether a guess is right was flooded: the next one
// looks later.
func (b *Book) looked(pass Pass, now time.Time) {
	if pass.probe == 0 {
		return
	}
	rs, n := b.find(pass.call)
	for _, r := range rs[:n] {
		if r.inferred && r.probe == pass.probe {
			r.peeks++
			r.peek = now.Add(peekAfter(r.peeks))
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
func (b *Book) repeats(targets []target, pass Pass, n Notice, now time.Time) int {
	if !n.Unnumbered && (n.Kind == SlowMode || n.Kind == PremiumWait) {
		return 0
	}
	repeats := 0
	for _, t := range targets {
		if r := b.records[t.key]; r != nil {
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

// hold is how long the flood lasts as the book has it. A wait that proved too short is
// lengthened by more each time, but never more than doubled; one without a number has
// nothing but this.
func (n Notice) hold(repeats int) time.Duration {
	if n.Unnumbered {
		return MinWait << min(repeats, maxDoublings)
	}
	if repeats == 0 {
		return n.Wait
	}
	return n.Wait + min(n.Wait, MinWait<<min(repeats-1, maxDoublings))
}

// note brings one record up to date with the flood.
func (b *Book) note(f arrival, t target) Record {
	r := b.records[t.key]
	if r == nil {
		r = &record{key: t.key}
		b.records[t.key] = r
	}
	if t.widens {
		r.hits, r.why = t.hits, t.why
	}
	r.hits = min(r.hits+1, maxCount)
	r.repeats, r.vague = f.repeats, f.vague
	until := f.until
	if !t.most.IsZero() && t.most.Before(until) {
		until = t.most
	}
	// A guess that stands goes on being looked into, by who looks already.
	fresh := r.left(f.now) <= 0 || t.widens
	if fresh || !r.inferred {
		r.probe = 0
	}
	if t.widens {
		r.peeks = 0
	}
	if !t.most.Equal(r.until) { // else it tells nothing new
		r.longest = later(r.longest, later(f.until, t.longest))
	}
	if fresh {
		r.peek = f.now.Add(peekAfter(r.peeks))
	}
	news := until.Sub(r.until) >= MinWait
	if until.After(r.until) {
		r.until, r.wait = until, until.Sub(f.now)
		r.kind, r.owner, r.restored = f.kind, f.call, false
		switch {
		case t.widens:
			r.since = t.since
		case fresh || !r.inferred:
			r.since = f.seq
		}
		b.journal.set(r.key)
	}
	b.wake(r.key)

	pub := r.public()
	pub.News = news
	pub.Widened = t.widens
	return pub
}
