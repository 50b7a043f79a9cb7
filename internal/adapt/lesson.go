package adapt

import (
	"cmp"
	"time"

	"github.com/weirtg/weir/internal/learn"
	"github.com/weirtg/weir/ratelimit"
)

// lessonOf returns the limit of a subject, a new one if there is none. It returns nil where
// nothing can be learned. While the configured limit is paused, held is all that is known
// of a ceiling, 0 for nothing.
func (t *Limits) lessonOf(what subject, held float64) *lesson {
	if r := t.find(what); r != nil {
		return r
	}
	if what.chat != 0 {
		return t.lessonOfChat(what, held)
	}
	if t.unlearned[what.category] == nil {
		rate, err := learn.New(held, learn.Options{})
		if err != nil {
			return nil
		}
		t.unlearned[what.category] = rate
	}
	r := &lesson{Rate: t.unlearned[what.category], others: t.others[what.category]}
	t.categories[what.category] = r
	t.tally()
	return r
}

func (t *Limits) lessonOfChat(what subject, held float64) *lesson {
	ceiling := cmp.Or(t.opts.ChatLimit(what.chat).Rate, held)
	rate, err := learn.New(ceiling, learn.Options{})
	if err != nil {
		return nil // no rate at all
	}
	r := &lesson{Rate: rate}
	if len(t.chats) >= maxChats {
		for chat := range t.chats { // any: the floods themselves are known apart from it
			t.note(subject{chat: chat}, false) // what a store gathers in a month would be too much to read at once
			t.forget(subject{chat: chat})
			break
		}
	}
	if n := len(t.spare); n > 0 {
		r.pace, t.spare = t.spare[n-1], t.spare[:n-1]
	} else if r.pace, err = t.opts.Paces.Another(ratelimit.Limit{Rate: ceiling, Burst: 1}); err != nil {
		return nil // no rate for a gate
	}
	r.pace.Set().SetChargeAtBegin(true) // a single token of burst: see apply
	r.others = r.pace.Set().Others()
	t.chats[what.chat] = r
	t.tally()
	return r
}

func (t *Limits) find(what subject) *lesson {
	if what.chat != 0 {
		return t.chats[what.chat]
	}
	return t.categories[what.category]
}

// tally has to run after whatever changes the number of limits.
func (t *Limits) tally() {
	n := len(t.chats)
	for _, r := range t.categories {
		if r != nil {
			n++
		}
	}
	t.learned.Store(int64(n))
}

// note marks a limit as one to be kept, or to be forgotten where it is kept.
func (t *Limits) note(what subject, urgent bool) {
	if t.opts.Journal != nil {
		t.opts.Journal.Mark(what.key(), urgent)
	}
}

// unlearn forgets a limit, here and where it is kept.
func (t *Limits) unlearn(what subject) {
	if t.opts.Journal != nil {
		t.opts.Journal.Ended(what.key(), t.find(what).flooded)
	}
	t.forget(what)
	t.apply(what, ratelimit.Change{})
}

// forget drops a limit, and lets the calls that wait at its gate go on at the ceiling.
func (t *Limits) forget(what subject) {
	switch r := t.find(what); {
	case r == nil:
		return
	case what.chat != 0:
		delete(t.chats, what.chat)
		t.spare = append(t.spare, r.pace)
		_ = t.opts.Limiter.Update(map[ratelimit.Gate]ratelimit.Change{r.pace.Set(): ratelimit.Rate(r.Ceiling())})
	default:
		if r.Learned() { // what is on the wire teaches nothing any more
			_ = r.Restore(learn.State{}, time.Time{})
		}
		t.categories[what.category], t.others[what.category] = nil, r.others
	}
	t.tally()
}
