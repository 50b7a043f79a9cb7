package invoke

import (
	"strings"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/ratelimit"
)

// longestLesson is the longest flood that a limit is learned from. One of an hour is a quota
// or a punishment, and no rate would have avoided it.
const longestLesson = time.Minute

// PaceGate is the name of the gate that a chat has for itself once it was flooded: the rate
// that it was seen to take, one message at a time.
const PaceGate = "learned"

// LearnedRate is a limit that floods have lowered, see [Limiter.Learned].
type LearnedRate struct {
	Category classify.Category // 0 for that of a chat
	Chat     classify.Peer     // 0 for that of a category
	Rate     float64           // what is kept to now, in calls a second
	Ceiling  float64           // what is configured
}

// Learned returns the limits that floods have lowered, those of categories first. It does
// not block.
func (l *Limiter) Learned() []LearnedRate {
	var all []LearnedRate
	for _, r := range l.learned.Learned() {
		all = append(all, LearnedRate(r))
	}
	return all
}

// Unlearn forgets what floods have taught, and goes back to what is configured.
func (l *Limiter) Unlearn() { l.learned.Forget() }

// counted is the call as the limits that were learned know it.
func (c *call) counted() adapt.Call {
	return adapt.Call{
		Category: c.Category, Chat: c.Peer, Method: c.Method, Cost: c.opt.cost, Messages: c.pass.messages,
	}
}

// ridesFree reports whether a call says nothing about what goes through the bucket of its
// category: one that passes by it, as a broadcast does that pays, and one that moves files,
// of which all parts but the first do.
func (c *call) ridesFree() bool { return c.pass.common == 0 || strings.HasPrefix(c.Method, "upload.") }

// chatLimit is what a chat is limited to: of a window, the calls that it lets through at once,
// and those a second over a period.
func (l *Limiter) chatLimit(chat classify.Peer) (limit ratelimit.Limit) {
	switch rule := l.chatGates(chat).Rule().(type) {
	case ratelimit.Limit:
		limit = rule
	case ratelimit.Window:
		limit = ratelimit.Limit{Rate: float64(rule.Limit) / rule.Period.Seconds(), Burst: rule.Limit}
	}
	return limit
}

// drain empties the buckets of what was let go with a call.
func (l *Limiter) drain(c *call, scope flood.Scope) {
	categories := []classify.Category{c.Category}
	for _, category := range classify.Categories() {
		half := scope == flood.Account && category != classify.Global && reads(category) == reads(c.Category)
		if half && category != c.Category {
			categories = append(categories, category)
		}
	}
	l.learned.Drain(categories...)
}
