package floods

import (
	"time"

	"github.com/weirtg/weir/flood"
)

// target is a record that a flood is to be noted in.
type target struct {
	key key
	// most is the latest deadline that the record may get from this flood; zero: the flood's.
	most time.Time

	// widens: this flood makes the scope wider, together with earlier ones that
	// the rest is about.
	widens  bool
	since   uint64
	longest time.Time
	hits    int
	why     string
}

// agrees reports whether a wait of so long may be that of the flood. Without a number the
// flood agrees with any that it may itself come to.
func (f arrival) agrees(wait time.Duration) bool {
	return agree(f.wait, wait) || f.vague && wait <= flood.MinWait<<maxDoublings
}

// continues reports whether the flood may be the one of a guess that is over: it is as long, or
// as what is left of the longest that led to the guess.
func (f arrival) continues(r *record) bool {
	left := r.longest.Sub(f.now)
	return f.agrees(r.wait) || left > 0 && f.agrees(left)
}

// reach returns where the flood is to be noted, the narrowest first. What a flood
// belongs to is not said by the server, so a scope gets wider only step by step,
// each on the evidence of two floods that agree with nothing let through in between.
func (t *Tracker) reach(f arrival) []target {
	c := f.call
	if f.kind != flood.FloodWait {
		return []target{{key: c.fixedKey(f.kind)}}
	}
	var targets []target
	if c.Chat == 0 {
		targets = append(targets, target{key: c.methodKey()})
	} else {
		targets = append(targets, target{key: c.chatKey()})
		if r := t.records[c.methodKey()]; r != nil && f.agrees(r.left(f.now)) && r.left(f.now) > 0 {
			// It is part of what the server said of the method, and makes that no longer.
			targets = append(targets, target{key: r.key, most: r.until})
		}
		if to, ok := t.widen(f, c.guessedKey()); ok {
			targets = append(targets, to)
		}
	}
	if to, ok := t.widen(f, c.accountKey()); ok {
		if last := targets[len(targets)-1]; to.widens && last.widens && !last.most.IsZero() && (to.most.IsZero() || last.most.Before(to.most)) {
			to.most = last.most
		}
		targets = append(targets, to)
	}
	return targets
}

// widen tells whether the flood concerns the scope k, which is wider than its own and a
// guess: because that scope is flooded already, or was until a moment ago and nothing came
// through since, or because of evidence.
func (t *Tracker) widen(f arrival, k key) (target, bool) {
	to := target{key: k}
	if r := t.records[k]; r != nil {
		left := r.left(f.now)
		switch {
		case f.whole && k.scope == flood.Method && r.stands(f.now):
			return to, true
		case f.wait <= left: // it tells nothing that the guess does not
			to.most = r.until
			return to, true
		case left > 0 && f.agrees(left):
			to.most = t.confirmed(f, r).Add(slack)
			return to, true
		case left <= 0 && f.continues(r) && (r.stands(f.now) || k.scope == flood.Account && f.sent >= r.since):
			return to, true
		}
	}
	if f.whole && k.scope == flood.Method {
		to.widens, to.since, to.why = true, f.seq, "floods before it were of all chats"
		return to, true
	}
	t.evidenceFor(f, k, func(r *record) {
		if !to.widens || r.since < to.since {
			to.since = r.since
		}
		to.widens = true
		to.hits += r.hits
		to.longest = later(to.longest, r.until)
		until := r.until
		if r.left(f.now) <= slack {
			until = until.Add(slack) // rounding and a call on the wire make more of it than the flood
		}
		if to.most.IsZero() || until.Before(to.most) {
			to.most, to.why = until, r.with(f.call)
		}
	})
	return to, to.widens
}

// confirmed is until when the guess lasts that a call met again, such as one that was on the
// wire: as far as another flood reaches with which this one agrees, but never less than before.
func (t *Tracker) confirmed(f arrival, guess *record) time.Time {
	until := guess.until
	t.evidenceFor(f, guess.key, func(r *record) { until = later(until, r.until) })
	return until
}
