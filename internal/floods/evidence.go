package floods

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirtg/weir/flood"
)

// maxEvidence bounds the floods that are compared with one that has just come, for each method
// and each half of the account. If more than that many stand with nothing let through in
// between, those that last longest count. Two are enough to make a scope wider.
const maxEvidence = 64

// slack is how far apart two waits of one flood may be however short they are. Waits are
// whole seconds, rounded, and a call that was on the wire may have made it a second longer.
const slack = 2 * time.Second

// agree reports whether two waits, both counted from now, may be those of one flood: the
// longer is at most twice the shorter, or at most [slack] more. An hour in one chat and five
// seconds in another are two floods.
func agree(a, b time.Duration) bool {
	shorter, longer := min(a, b), max(a, b)
	return longer <= 2*shorter || longer-shorter <= slack
}

// wider returns the scope that the record is evidence for: that of its method if it is a
// chat's, and that of its half of the account if it is a method's. The kinds whose scope
// Telegram tells are evidence for nothing, and neither is what [Tracker.Restore] took in:
// this process does not know what came through since.
func (r *record) wider() (k key) {
	switch {
	case r.fixed || r.restored:
	case r.scope == flood.Chat:
		k = Call{DC: r.dc, Method: r.method}.guessedKey()
	case r.scope == flood.Method:
		k = Call{DC: r.dc, Reads: r.owner.Reads}.accountKey()
	}
	return k
}

// index lists the record with the scope that it is evidence for. It has to run whenever that,
// or what the record says, changes.
func (t *Tracker) index(r *record, now time.Time) {
	k := r.wider()
	if r.supports != k {
		t.unlist(r)
	}
	if r.supports == k { // none, or listed already
		return
	}
	list := t.evidence[k]
	if len(list) >= maxEvidence {
		list = slices.DeleteFunc(list, func(old *record) bool {
			t.looked++
			over := old.left(now) <= 0 || t.refuted(k, old)
			if over {
				old.supports = key{}
			}
			return over
		})
	}
	if len(list) >= maxEvidence {
		first := 0
		for i, old := range list {
			t.looked++
			if old.until.Before(list[first].until) {
				first = i
			}
		}
		if !r.until.After(list[first].until) {
			t.evidence[k] = list
			return
		}
		list[first].supports = key{}
		list = slices.Delete(list, first, first+1)
	}
	r.supports = k
	t.evidence[k] = append(list, r)
}

// unlist takes the record out of the evidence.
func (t *Tracker) unlist(r *record) {
	if r.supports == (key{}) {
		return
	}
	list := t.evidence[r.supports]
	if i := slices.Index(list, r); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(t.evidence, r.supports)
	} else {
		t.evidence[r.supports] = list
	}
	r.supports = key{}
}

// refuted reports whether a call within the scope k that was sent after the flood of the
// record came through. So it was not the flood of that scope.
func (t *Tracker) refuted(k key, r *record) bool { return t.through[k] >= r.since }

// evidenceFor calls yield with each record that is evidence, together with the flood, for the
// scope k: one of the same method in another chat, or of another method in the same half of
// the account, whose deadline stands and agrees with the flood's.
func (t *Tracker) evidenceFor(f arrival, k key, yield func(*record)) {
	for _, r := range t.evidence[k] {
		t.looked++
		same := r.chat == f.call.Chat
		if k.scope == flood.Account {
			same = r.method == f.call.Method
		}
		if left := r.left(f.now); !same && left > 0 && f.agrees(left) && !t.refuted(k, r) {
			yield(r)
		}
	}
}

// with says in words what the record and the call have shown together.
func (r *record) with(c Call) string {
	if r.scope == flood.Chat {
		return fmt.Sprintf("chats %d and %d were both flooded", r.chat, c.Chat)
	}
	return fmt.Sprintf("%s and %s were both flooded", r.method, c.Method)
}
