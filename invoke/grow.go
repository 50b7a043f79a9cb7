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
	as.category = l.sentLocked(learned{category: c.Category}, c.opt.cost, now)
	if c.pass.messages > 0 {
		as.chat = l.sentLocked(learned{chat: c.Peer}, c.opt.cost, now)
	}
	return as
}

// sent tells the rate of a call that takes as many tokens as so many calls, and returns the
// first of them.
func sent(rate *learn.Rate, cost int, now time.Time) (as learn.Call) {
	as = rate.Sent(now)
	for range cost - 1 {
		rate.Sent(now)
	}
	return as
}

func (l *Limiter) sentLocked(what learned, cost int, now time.Time) (as learn.Call) {
	t := &l.learning
	r := t.find(what)
	if r == nil {
		if fresh := t.unlearned[what.category]; what.chat == 0 && fresh != nil {
			as = sent(fresh, cost, now)
		}
		return as
	}
	for range l.sentByAll(what, r, now) - cost {
		r.Sent(now) // by the others
	}
	as = sent(r.Rate, cost, now)
	r.at = now
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
	l.learning.note(what)
	if r.Moved() {
		l.learning.urgent.Store(true)
	}
}

// sentByAll is how many calls the processes of the account have sent together since this one
// sent its last. While nothing is left in a bucket that they share, it is all that the
// rate allows.
func (l *Limiter) sentByAll(what learned, r *lesson, now time.Time) int {
	if !l.shares || r.at.IsZero() {
		return 1
	}
	gate := l.gates[what.category]
	if what.chat != 0 {
		gate = r.pace.Key(uint64(what.chat))
	}
	if stats := gate.Stats(); stats.Tokens >= 1 && stats.Waiters == 0 {
		return 1
	}
	return min(max(1, int(math.Round(now.Sub(r.at).Seconds()*r.PerSecond()))), maxSentByAll)
}

// maxSentByAll bounds what one process takes the others to have sent between two of its
// own calls.
const maxSentByAll = 100
