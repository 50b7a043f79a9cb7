package floods

import (
	"strings"
	"time"

	"github.com/weirtg/weir/flood"
)

const (
	// maxMethod bounds the names of methods that are taken from a store, and that keys
	// hold as they are. Telegram's are shorter than a quarter of it.
	maxMethod = 256
	// maxWhy bounds the explanations that are taken from a store.
	maxWhy = 256
	// maxCount bounds what only ever grows.
	maxCount = 1 << 30
	// maxHold is the longest that a flood can last.
	maxHold = flood.MaxWait + flood.MinWait<<maxDoublings
	// maxAhead is the furthest deadline that is believed: a clock may have been set back
	// since it was written, but hardly by two weeks.
	maxAhead = maxHold + flood.MaxWait
)

// keyOf is where the tracker keeps the record; ok is false for one that no tracker can have written.
func keyOf(r flood.Record) (k key, ok bool) {
	c := Call{DC: r.DC, Method: r.Method, Chat: r.Chat, Reads: r.Reads}
	switch {
	case r.Kind != flood.FloodWait:
		k = c.fixedKey(r.Kind)
	case r.Scope == flood.Chat:
		k = c.chatKey()
	case r.Scope == flood.Method && (r.Inferred || r.Why != ""):
		k = c.guessedKey()
	case r.Scope == flood.Method:
		k = c.methodKey()
	default:
		k = c.accountKey()
	}
	ok = k.scope == r.Scope && flood.Notice{Kind: r.Kind}.Waitable() &&
		(r.Method == "") == (r.Scope == flood.Account) && len(r.Method) <= maxMethod &&
		(r.Chat == 0 || r.Scope == flood.Chat) && (r.Chat != 0 || r.Kind != flood.FloodWait || r.Scope != flood.Chat)
	return k, ok
}

// Restore takes in floods that a store kept, or that another process met. Of two
// deadlines for the same the later one counts, a deadline that is over is ignored, and
// calls that wait reckon again at once. Neither is what is left ever more than was
// ordered, should the clock have been set back meanwhile.
//
// What is restored holds calls back as any flood does, but is no evidence: it makes no
// other flood wider, and calls sent before it was restored take nothing back. A guess stays
// one: it is probed after the same seconds as a new one.
//
// A record without Until, as [Tracker.Changes] tells of a flood that ended early, ends what
// Restore brought under its [flood.Record.Key]. What this tracker's own calls met since stays. Should
// a store tell, within a minute, that the flood stands that has just ended, it is ignored.
//
// Records that no tracker can have written are ignored: of a kind or a scope that does not
// exist, without a wait, with a method of more than 256 bytes, with a deadline more than
// four weeks ahead. Numbers out of range are cut. Restore does not block.
func (t *Tracker) Restore(records ...flood.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	seq := t.seq.Load() + 1
	news := false
	for _, rec := range records {
		if k, ok := keyOf(rec); ok && t.restore(k, rec, now, seq) {
			news = true
		}
	}
	t.sweep(now)
	if news {
		// Calls on their way to the wire have to look again, and after the size is seen.
		t.seq.Store(seq)
	}
}

// restore tells whether the record holds calls back from now on that went before.
func (t *Tracker) restore(k key, rec flood.Record, now time.Time, seq uint64) bool {
	r := t.records[k]
	if rec.Until.IsZero() {
		if r != nil && r.restored && r.left(now) > 0 {
			t.end(r, now)
			t.journal.known(k)
		}
		return false
	}
	left, wait := rec.Until.Sub(now), min(rec.Wait, maxHold)
	if wait <= 0 || left <= 0 || left > maxAhead || t.journal.hasEnded(k, rec.Until.Add(-wait)) {
		return false
	}
	left = min(left, wait)
	fresh := r == nil || r.dead(now)
	if fresh {
		r = t.add(k)
	} else if left <= r.left(now) {
		return false
	}
	// A guess that stands keeps its probes. If the probes of other processes put it off or began it
	// anew, all processes would probe all the time.
	if old := r.left(now); old <= 0 || !r.inferred {
		r.probe, r.nextProbe = 0, now.Add(probeAfter(r.probed))
	}
	// What comes back from the store a moment longer than it was met here, for two
	// clocks never agree, is still known at first hand.
	if fresh || r.restored || left-r.left(now) >= flood.MinWait {
		r.since, r.restored, r.vague = seq, true, false
		r.kind, r.owner = rec.Kind, Call{DC: rec.DC, Method: rec.Method, Chat: rec.Chat, Reads: rec.Reads}
		r.why = ""
		if k.inferred {
			r.why = strings.ToValidUTF8(rec.Why[:min(len(rec.Why), maxWhy)], "")
		}
	}
	r.until, r.wait = now.Add(left), wait
	r.hits = max(r.hits, 1, min(rec.Hits, maxCount))
	r.repeats = max(r.repeats, min(rec.Repeats, maxCount))
	t.schedule(r)
	t.index(r, now)
	t.journal.known(k)
	t.wake(k)
	return true
}
