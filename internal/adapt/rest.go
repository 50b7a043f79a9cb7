package adapt

import (
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/ratelimit"
)

const (
	// forgetAfter is how much rest makes a lesson forgotten that few floods taught: by then
	// any limit of seconds or minutes has filled up again.
	forgetAfter = 10 * time.Minute
	// fewFloods are as many as one limit may need to be found. With each flood above them
	// the rest has to be twice as long, up to forgetAtMost.
	fewFloods    = 3
	forgetAtMost = 24 * time.Hour
	// keepRestEvery is how much rest is lost at most in a restart.
	keepRestEvery = time.Minute
)

// rest is how much of a learned limit was not used since its last flood. A rate that nobody
// needs proves nothing and costs nothing, until a burst meets what is left of it.
type rest struct {
	floods int           // that taught the rate
	sum    time.Duration // until seen
	seen   time.Time     // the last call, or the end of the last flood
	kept   time.Duration // the sum that is stored
}

// flooded begins anew, with the end of a flood.
func (r *rest) flooded(until time.Time) {
	r.floods++
	r.sum, r.kept, r.seen = 0, 0, until
}

// at is the rest until now, if so many calls went out since the last that was counted.
func (r *rest) at(now time.Time, calls, perSecond float64) time.Duration {
	used := time.Duration(calls / perSecond * float64(time.Second))
	return max(0, r.sum+max(0, now.Sub(r.seen))-used)
}

// used counts calls, and reports whether enough has changed to be stored.
func (r *rest) used(now time.Time, calls, perSecond float64) (worth bool) {
	r.sum = r.at(now, calls, perSecond)
	if now.After(r.seen) {
		r.seen = now
	}
	worth = r.sum-r.kept >= keepRestEvery
	if worth {
		r.kept = r.sum
	}
	return worth
}

// enough is the rest after which nothing is left of the lesson.
func (r *rest) enough() time.Duration {
	d := forgetAfter
	for range min(max(0, r.floods-fewFloods), 16) {
		d = min(2*d, forgetAtMost)
	}
	return d
}

// ForgetRested forgets what a call's category and chat have learned, if they have rested for
// long enough.
func (t *Limits) ForgetRested(c Call) {
	if t.learned.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opts.Clock.Now()
	t.forgetRested(subject{category: c.Category}, now)
	if c.Messages > 0 {
		t.forgetRested(subject{chat: c.Chat}, now)
	}
}

// ForgetAllRested does so for all, before they are shown.
func (t *Limits) ForgetAllRested() {
	if t.learned.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opts.Clock.Now()
	for category := range t.categories {
		t.forgetRested(subject{category: classify.Category(category)}, now)
	}
	for chat := range t.chats {
		t.forgetRested(subject{chat: chat}, now)
	}
}

func (t *Limits) forgetRested(what subject, now time.Time) {
	r := t.find(what)
	if r == nil {
		return
	}
	others := 0.0 // that other processes have sent meanwhile
	if t.opts.Shares {
		others = max(0, t.gate(what, r).Others()-r.others)
	}
	if r.rest.at(now, others, r.PerSecond()) < r.rest.enough() {
		return
	}
	idle := now.Sub(r.rest.seen)
	t.unlearn(what)
	if limit := t.configured[what.category]; what.chat == 0 && others == 0 && idle.Seconds()*limit.Rate >= float64(limit.Burst) {
		// The burst that floods had lowered would be full by now.
		t.apply(what, ratelimit.Change{}.Inherit(ratelimit.Full))
	}
}

// gate is the gate that keeps to a learned limit.
func (t *Limits) gate(what subject, r *lesson) ratelimit.Gate {
	if what.chat != 0 {
		return r.pace.Set()
	}
	return t.opts.Gates[what.category]
}

// restoreRest takes over what was stored of it.
func (r *rest) restore(told value, now time.Time) {
	r.floods = max(1, told.Floods)
	r.sum = min(max(0, told.Rest), forgetAtMost)
	r.kept = r.sum
	r.seen = now
	if told.Over.After(now) {
		r.seen = told.Over
	}
}
