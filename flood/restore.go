package flood

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// maxMethod bounds the names of methods that are taken from a store, and that keys
	// hold as they are. Telegram's are shorter than a quarter of it.
	maxMethod = 256
	// maxWhy bounds the explanations that are taken from a store.
	maxWhy = 256
	// maxCount bounds what only ever grows.
	maxCount = 1 << 30
	// maxHold is the longest that a flood can last by its book.
	maxHold = MaxWait + MinWait<<maxDoublings
	// maxAhead is the furthest deadline that is believed: a clock may have been set back
	// since it was written, but hardly by two weeks.
	maxAhead = maxHold + MaxWait
)

// MarshalJSON writes the record with its deadline in UTC. What Widened and News say is
// left out: it is about one flood, not about what stands. It fails for a Kind or a Scope
// that does not exist.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	if !r.Until.IsZero() {
		r.Until = r.Until.UTC()
	}
	return json.Marshal(plain(r))
}

// Key is the text under which a store keeps the record: the same for all records that
// replace one another, different for all others, at most 512 bytes.
func (r Record) Key() string {
	k, _ := r.key()
	reach := "own"
	switch {
	case k.inferred:
		reach = "inferred"
	case k.fixed:
		reach = "told"
	}
	return fmt.Sprintf("flood/%d/%v/%s/%d/%t/%s", k.dc, k.scope, reach, k.chat, k.reads, brief(k.method))
}

// brief is the method, or for one that is too long for a key a digest of it.
func brief(method string) string {
	if len(method) <= maxMethod {
		return method
	}
	return fmt.Sprintf("#%x", sha256.Sum256([]byte(method)))
}

// key is where the book keeps the record; ok tells whether it can be one of a book's.
func (r Record) key() (k key, ok bool) {
	c := Call{DC: r.DC, Method: r.Method, Chat: r.Chat, Reads: r.Reads}
	switch {
	case r.Kind != FloodWait:
		k = c.fixedKey(r.Kind)
	case r.Scope == Chat:
		k = c.chatKey()
	case r.Scope == Method && (r.Inferred || r.Why != ""):
		k = c.guessedKey()
	case r.Scope == Method:
		k = c.methodKey()
	default:
		k = c.accountKey()
	}
	ok = k.scope == r.Scope && Notice{Kind: r.Kind}.Waitable() &&
		(r.Method == "") == (r.Scope == Account) && len(r.Method) <= maxMethod &&
		(r.Chat == 0 || r.Scope == Chat) && (r.Chat != 0 || r.Kind != FloodWait || r.Scope != Chat)
	return k, ok
}

// Restore takes in floods that a store kept, or that another process met. Of two
// deadlines for the same the later one counts, a deadline that is over is ignored, and
// calls that wait reckon again at once. Neither is what is left ever more than was
// ordered, should the clock have been set back meanwhile.
//
// What is restored holds calls back as any flood does, but is no evidence: it makes no
// other flood wider, and calls sent before it was restored take nothing back. A guess stays
// one: it is looked into after the same seconds as a new one.
//
// A record without Until, as [Book.Changes] tells of a flood that ended early, ends what
// Restore brought under its [Record.Key]. What the book's own calls met since stays. Should
// a store tell, within a minute, that the flood stands that has just ended, it is ignored.
//
// Records that no book can have written are ignored: of a kind or a scope that does not
// exist, without a wait, with a method of more than 256 bytes, with a deadline more than
// four weeks ahead. Numbers out of range are cut. Restore does not block.
func (b *Book) Restore(records ...Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	seq := b.seq.Load() + 1
	news := false
	for _, rec := range records {
		if k, ok := rec.key(); ok && b.restore(k, rec, now, seq) {
			news = true
		}
	}
	b.sweep(now)
	if news {
		// Calls on their way to the wire have to look again, and after the size is seen.
		b.seq.Store(seq)
	}
}

// restore tells whether the record holds calls back from now on that went before.
func (b *Book) restore(k key, rec Record, now time.Time, seq uint64) bool {
	r := b.records[k]
	if rec.Until.IsZero() {
		if r != nil && r.restored && r.left(now) > 0 {
			b.end(r, now)
			b.journal.told(k)
		}
		return false
	}
	left, wait := rec.Until.Sub(now), min(rec.Wait, maxHold)
	if wait <= 0 || left <= 0 || left > maxAhead || b.journal.knows(k, rec.Until.Add(-wait)) {
		return false
	}
	left = min(left, wait)
	fresh := r == nil || r.dead(now)
	if fresh {
		r = &record{key: k}
		b.records[k] = r
	} else if left <= r.left(now) {
		return false
	}
	// A guess that stands goes on being looked into: were it put off by what others tell of
	// their looks, or begun anew, all would look all the time.
	if old := r.left(now); old <= 0 || !r.inferred {
		r.probe, r.peek = 0, now.Add(peekAfter(r.peeks))
	}
	// What comes back from the store a moment longer than it was met here, for two
	// clocks never agree, is still known at first hand.
	if fresh || r.restored || left-r.left(now) >= MinWait {
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
	b.journal.told(k)
	b.wake(k)
	return true
}
