package flood

import "time"

// maxStreak bounds the growth of waits without a number: 1 s, 2 s, … 64 s.
const maxStreak = 7

// Passed notes that the call came through: any answer that is not a flood. What
// it proves open is open at once: a call that went first lets the others go, and
// a call that was sent after the flood which led to a wider scope takes the
// widening back. In slow mode a message proves that the next one has to wait, so
// there the others go on one by one.
func (b *Book) Passed(pass Pass) {
	if b.size.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range [...]key{pass.call.methodKey(), pass.call.accountKey()} {
		if pass.seq > b.through[k] {
			b.through[k] = pass.seq
		}
	}
	rs, n := b.find(pass.call)
	if n == 0 {
		return
	}
	now := b.clock.Now()
	for _, r := range rs[:n] {
		switch {
		case pass.seq < r.since: // sent before the flood: says nothing about it
		case r.kind == SlowMode && r.waiting > 0:
		case r.inferred || r.left(now) <= 0:
			delete(b.records, r.key)
			b.wake(r.key)
		}
	}
	b.leave(pass)
	b.sweep(now)
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
func (b *Book) Flooded(pass Pass, n Notice) Record {
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
	f := arrival{call: c, kind: n.Kind, now: now, seq: b.seq.Load() + 1, until: now.Add(n.Wait)}
	targets := b.reach(f)
	if n.Unnumbered {
		f.streak = b.streak(targets, pass.seq)
		f.until = now.Add(MinWait << (f.streak - 1))
	}
	var pub Record
	for _, t := range targets {
		pub = b.note(f, t) // the last is the widest
	}
	b.sweep(now)
	// In this order: who reads the new number without the lock sees the new size.
	b.seq.Store(f.seq)
	return pub
}

// arrival is a flood that has just come.
type arrival struct {
	call   Call
	kind   Kind
	now    time.Time
	until  time.Time
	seq    uint64
	streak int
}

// streak is the number of floods without a number in a row, this one included. A
// call that was sent before the latest of them is not one more: thirty file parts
// flooded together are one flood.
func (b *Book) streak(targets []target, sent uint64) int {
	streak := 1
	for _, t := range targets {
		if r := b.records[t.key]; r != nil {
			s := r.streak
			if sent >= r.since {
				s++
			}
			streak = max(streak, s)
		}
	}
	return min(streak, maxStreak)
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
	r.hits++
	r.streak = f.streak
	r.inferred = t.inferred
	r.probe = 0

	until := f.until
	if t.until.After(until) {
		until = t.until
	}
	news := until.Sub(r.until) >= MinWait
	if until.After(r.until) {
		r.until, r.wait, r.since = until, until.Sub(f.now), f.seq
		r.kind, r.owner = f.kind, f.call
		if t.widens {
			r.since = t.since
		}
	}
	b.wake(r.key)

	pub := r.public()
	pub.News = news
	pub.Widened = t.widens
	return pub
}
