package invoke

import (
	"math"
	"time"

	"github.com/weirtg/weir/learn"
	"github.com/weirtg/weir/ratelimit"
)

// leaderLost is how long a process that leads may be silent before another goes on alone.
const leaderLost = 30 * time.Second

// sentAs is a call as the rates that concern it have seen it go out.
type sentAs struct {
	category, chat learn.Call
	of             *lesson // the chat's; calls are numbered by each anew
}

// sending lets the rates of a call grow by it, which goes out now.
func (l *Limiter) sending(c *call, now time.Time) (as sentAs) {
	t := &l.learning
	if t.off {
		return as
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	as.category = l.sentLocked(learned{category: c.Category}, c.opt.cost, now)
	if c.pass.messages > 0 {
		as.of = t.chats[c.Peer]
		as.chat = l.sentLocked(learned{chat: c.Peer}, c.opt.cost, now)
	}
	return as
}

// sent tells the rate of a call that takes as many tokens as cost calls, after those of
// others, and returns the first of its own.
func sent(rate *learn.Rate, others, cost int, now time.Time) (as learn.Call) {
	if others > 0 {
		rate.Sent(now, others)
	}
	as = rate.Sent(now, 1)
	if cost > 1 {
		rate.Sent(now, cost-1)
	}
	return as
}

func (l *Limiter) sentLocked(what learned, cost int, now time.Time) (as learn.Call) {
	t := &l.learning
	r := t.find(what)
	if r == nil {
		if fresh := t.unlearned[what.category]; what.chat == 0 && fresh != nil {
			others := l.sentByOthers(l.gates[what.category], &t.others[what.category])
			as = sent(fresh, others, cost, now)
		}
		return as
	}
	others := l.sentByOthers(l.learnedGate(what, r), &r.others)
	if r.rest.used(now, float64(cost+others), r.PerSecond()) {
		t.note(what)
	}
	as = sent(r.Rate, others, cost, now)
	switch {
	case !r.Learned():
		l.unlearnLocked(what, now)
	case r.PerSecond() != r.told: // what was not told would look as if it were not used
		l.tellLocked(what, ratelimit.Change{})
		if !l.shares {
			t.note(what)
		}
	}
	if l.shares {
		l.leadLocked(what, r, now)
	}
	return as
}

// leadLocked tells the processes that follow how far the rate has come.
func (l *Limiter) leadLocked(what learned, r *lesson, now time.Time) {
	if !r.leads && now.Sub(r.heard) < leaderLost {
		return
	}
	r.leads = true
	r.Lead()
	l.learning.note(what)
	if r.Moved() {
		l.learning.urgent.Store(true)
	}
}

// sentByOthers is how many calls the other processes of the account have sent since this
// one sent its last. seen is how many it has counted before.
func (l *Limiter) sentByOthers(gate ratelimit.Gate, seen *float64) int {
	if !l.shares {
		return 0
	}
	news := math.Round(gate.Others() - *seen)
	*seen += news
	return max(0, int(news))
}
