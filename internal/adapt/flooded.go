package adapt

import (
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/learn"
	"github.com/weirtg/weir/ratelimit"
)

// maxNarrow bounds how many floods are told to a limit late: calls that are on the wire
// together may be told waits that do not agree, before two do.
const maxNarrow = 16

// Flooded notes that a call was answered with the flood of the record, whose About says whose
// limit that lowers. It returns the limit, in calls a second; lowered is false where the flood
// taught nothing, or nothing new.
func (t *Limits) Flooded(c Call, m Mark, record flood.Record) (rate float64, lowered bool) {
	if t.opts.Off || !record.Evidence {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if record.Scope == flood.Chat {
		narrow := append(t.narrow[c.Category], m.category)
		t.narrow[c.Category] = narrow[max(0, len(narrow)-maxNarrow):]
	}
	switch record.About {
	case flood.Chat:
		rate, lowered = t.flooded(subject{chat: c.Chat}, c, m, record)
	case flood.Method, flood.Account:
		rate, lowered = t.flooded(subject{category: c.Category}, c, m, record)
		if r := t.categories[c.Category]; r != nil && record.Widened {
			// The floods before it, which were taken for their chats', were not that either.
			for _, call := range t.narrow[c.Category] {
				r.Flooded(call)
			}
			t.narrow[c.Category] = t.narrow[c.Category][:0]
		}
	}
	// A flood of a chat whose call was sent before the flood was over that has taught the limit
	// of its category is part of that one.
	if r := t.categories[c.Category]; r != nil && record.Known && m.at.Before(r.over) {
		r.Flooded(m.category)
	}
	return rate, lowered
}

// flooded lowers the limit of a subject.
func (t *Limits) flooded(what subject, c Call, m Mark, record flood.Record) (rate float64, lowered bool) {
	first := t.find(what) == nil
	r := t.lessonOf(what, 0)
	if r == nil {
		return 0, false
	}
	as := m.category
	if what.chat != 0 {
		if as = m.chat; m.of != r {
			as = learn.Call{} // it is about a limit that was forgotten
		}
	}
	if first && what.chat != 0 { // it begins with the call that was flooded
		as = count(r.Rate, 0, c.Cost, m.at)
	}
	if record.Widened && m.at.Before(r.over) {
		// It tells how far that flood reaches, and nothing new of the rate, but for how many
		// of the calls that went out with it were refused.
		if m.at.Before(r.lowered) {
			r.Rate.Flooded(as)
		}
		return 0, false
	}
	before := r.State()
	if !r.Rate.Flooded(as) {
		return 0, false
	}
	if basis := record.Key(); c.Chat != 0 && (record.Widened || basis != r.basis) {
		r.basis, r.before = basis, before
	}
	r.lowered = t.opts.Clock.Now()
	r.rest.flooded(record.Until)
	r.over, r.flooded, r.leads = record.Until, r.State().Flooded, true
	t.note(what, true)
	t.apply(what, ratelimit.Change{}.Inherit(ratelimit.Empty))
	return r.PerSecond(), true
}

// Refuted undoes what was learned from a flood that was taken for one of all chats, or of
// all methods, and was not: a call came through that it would have stopped.
func (t *Limits) Refuted(record flood.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	basis, now := record.Key(), t.opts.Clock.Now()
	for category, r := range t.categories {
		if r == nil || r.basis != basis {
			continue
		}
		what, state := subject{category: classify.Category(category)}, r.before
		state.Flooded = r.flooded // by which other processes know what it replaces
		_ = r.Restore(state, now)
		r.basis, r.over = "", time.Time{}
		r.rest.floods = max(1, r.rest.floods-1)
		if r.Learned() {
			t.note(what, true)
			t.apply(what, ratelimit.Change{})
		} else {
			t.unlearn(what)
		}
	}
}
