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
type sentAs struct{ category, chat learn.Call }

// sending lets the rates of a call grow by it, which goes out now.
func (l *Limiter) sending(c *call, now time.Time) (as sentAs) {
	t := &l.learning
	if t.off {
		return as
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	as.category = l.sentLocked(learned{category: c.Category}, now)
	if c.pass.messages > 0 {
		as.chat = l.sentLocked(learned{chat: c.Peer}, now)
	}
	return as
}

func (l *Limiter) sentLocked(what learned, now time.Time) (as learn.Call) {
	t := &l.learning
	r := t.find(what)
	if r == nil {
		if fresh := t.unlearned[what.category]; what.chat == 0 && fresh != nil {
			as = fresh.Sent(now, l.sentByAll(l.gates[what.category], &t.others[what.category]))
		}
		return as
	}
	gate := l.gates[what.category]
	if what.chat != 0 {
		gate = r.pace.Set()
	}
	as = r.Sent(now, l.sentByAll(gate, &r.others))
	switch {
	case !r.Learned():
		t.note(what)
		l.forgetLocked(what)
		l.tellLocked(what, ratelimit.Change{})
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

// sentByAll is how many calls the processes of the account have sent together since this one
// sent its last, with the one that goes out now. seen is how many of others it has counted.
func (l *Limiter) sentByAll(gate ratelimit.Gate, seen *float64) int {
	if !l.shares {
		return 1
	}
	news := math.Round(gate.Others() - *seen)
	*seen += news
	return 1 + max(0, int(news))
}
