package flood

import (
	"fmt"
	"time"
)

// target is a record that a flood is to be noted in.
type target struct {
	key      key
	inferred bool

	// widens: this flood makes the scope wider, together with an earlier one that
	// the rest is about.
	widens bool
	until  time.Time
	since  uint64
	hits   int
	why    string
}

// reach returns where the flood is to be noted, the narrowest first. What a flood
// belongs to is not said by the server, so a scope gets wider only step by step,
// each on the evidence of two floods with nothing let through in between.
func (b *Book) reach(f arrival) []target {
	c := f.call
	if f.kind != FloodWait {
		return []target{{key: c.fixedKey(f.kind)}}
	}
	var ts []target
	var until time.Time // of what is narrower
	if c.Chat == 0 {
		ts = append(ts, target{key: c.methodKey()})
	} else {
		ts = append(ts, target{key: c.chatKey()})
		if t, ok := b.widen(f, c.methodKey()); ok {
			ts, until = append(ts, t), t.until
		}
	}
	if t, ok := b.widen(f, c.accountKey()); ok {
		if until.After(t.until) {
			t.until = until
		}
		ts = append(ts, t)
	}
	return ts
}

// widen tells whether the flood concerns the scope k, which is wider than its own:
// because that scope is flooded already, or was until a moment ago and nothing came through
// since, or because of evidence.
func (b *Book) widen(f arrival, k key) (target, bool) {
	t := target{key: k, inferred: true}
	if r := b.records[k]; r != nil && (r.stands(f.now) || k.scope == Account && f.sent >= r.since) {
		t.inferred = r.inferred
		return t, true
	}
	if f.whole && k.scope == Method {
		t.widens, t.since, t.why = true, f.seq, "floods before it were of all chats"
	}
	for _, r := range b.records {
		if r.testifies(f, k) && b.through[k] < r.since && r.until.After(t.until) {
			t.widens, t.until, t.since, t.hits, t.why = true, r.until, r.since, r.hits, r.with(f.call)
		}
	}
	return t, t.widens
}

// testifies reports whether the record, together with the flood, speaks for the
// scope k: the same method in another chat, or another method of the same half of
// the account, as long as the deadline stands. What [Book.Restore] told speaks for
// nothing: nobody here knows what came through since.
func (r *record) testifies(f arrival, k key) bool {
	if r.fixed || r.restored || r.dc != k.dc || r.left(f.now) <= 0 {
		return false
	}
	if k.scope == Method {
		return r.scope == Chat && r.method == k.method && r.chat != f.call.Chat
	}
	return r.scope == Method && r.method != f.call.Method && r.owner.Reads == k.reads
}

// with says in words what the record and the call have shown together.
func (r *record) with(c Call) string {
	if r.scope == Chat {
		return fmt.Sprintf("chats %d and %d were both flooded", r.chat, c.Chat)
	}
	return fmt.Sprintf("%s and %s were both flooded", r.method, c.Method)
}
