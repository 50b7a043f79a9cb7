package adapt

import (
	"math"
	"time"

	"github.com/weirtg/weir/internal/learn"
	"github.com/weirtg/weir/ratelimit"
)

// leaderLost is how long a process that leads may be silent before another goes on alone.
const leaderLost = 30 * time.Second

// Sent notes that a call goes out now, by which the limits that concern it grow, and
// returns what [Limits.Flooded] needs to know of that moment.
func (t *Limits) Sent(c Call) Mark {
	m := Mark{at: t.opts.Clock.Now()}
	if t.opts.Off {
		return m
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m.category = t.sent(subject{category: c.Category}, c.Cost, m.at)
	if c.Messages > 0 {
		m.of = t.chats[c.Chat]
		m.chat = t.sent(subject{chat: c.Chat}, c.Cost, m.at)
	}
	return m
}

// count tells the estimator of a call that takes as many tokens as cost calls, after those
// of others, and returns the first of its own.
func count(rate *learn.Rate, others, cost int, now time.Time) learn.Call {
	if others > 0 {
		rate.Sent(now, others)
	}
	first := rate.Sent(now, 1)
	if cost > 1 {
		rate.Sent(now, cost-1)
	}
	return first
}

func (t *Limits) sent(what subject, cost int, now time.Time) (as learn.Call) {
	r := t.find(what)
	if r == nil {
		if fresh := t.unlearned[what.category]; what.chat == 0 && fresh != nil {
			others := t.sentByOthers(t.opts.Gates[what.category], &t.others[what.category])
			as = count(fresh, others, cost, now)
		}
		return as
	}
	others := t.sentByOthers(t.gate(what, r), &r.others)
	if r.rest.used(now, float64(cost+others), r.PerSecond()) {
		t.note(what, false)
	}
	as = count(r.Rate, others, cost, now)
	switch {
	case !r.Learned():
		t.unlearn(what)
	case r.PerSecond() != r.told: // a gate that is not set would look as if it were not used
		t.apply(what, ratelimit.Change{})
		if !t.opts.Shares {
			t.note(what, false)
		}
	}
	if t.opts.Shares {
		t.lead(what, r, now)
	}
	return as
}

// lead tells the processes that follow how far the limit has come.
func (t *Limits) lead(what subject, r *lesson, now time.Time) {
	if !r.leads && now.Sub(r.heard) < leaderLost {
		return
	}
	r.leads = true
	r.Lead()
	t.note(what, r.Moved())
}

// sentByOthers is how many calls the other processes of the account have sent since this
// one sent its last. seen is how many it has counted before.
func (t *Limits) sentByOthers(gate ratelimit.Gate, seen *float64) int {
	if !t.opts.Shares {
		return 0
	}
	news := math.Round(gate.Others() - *seen)
	*seen += news
	return max(0, int(news))
}
