package invoke

import (
	"strings"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/floods"
	"github.com/weirtg/weir/ratelimit"
)

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
func (l *Limiter) Unlearn() {
	l.learned.Forget()
	l.tracker.ForgetHistory()
}

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

// flooded records a flood, and lowers the limit of what it is about.
func (l *Limiter) flooded(c *call, pass floods.Pass, notice flood.Notice) flood.Record {
	pass.Call.Quiet, pass.Call.Retried = l.quiet(c), c.floods > 0
	record := l.tracker.Flooded(pass, notice)
	if !record.Evidence {
		return record
	}
	if rate, lowered := l.learned.Flooded(c.counted(), c.mark, record); lowered {
		e := Event{Kind: Learned, Method: c.Method, DC: l.number(c.dc), Flood: record, Rate: rate}
		if record.About == flood.Chat {
			e.Chat = c.Peer
		} else {
			e.Category = c.Category
		}
		l.tell(e)
	}
	return record
}

// quiet reports whether the chat of a call had little else sent to it lately: a flood
// there is hardly about how much it gets. It reports false where the chat's own limit is known,
// which shows what the flood is about. A call that passes no gate of its chat counts as quiet:
// the rate of the chat is not its own.
func (l *Limiter) quiet(c *call) bool {
	if c.pass.messages == 0 {
		return true
	}
	if c.queued || l.learned.KnowsChat(c.Peer) {
		return false
	}
	stats := l.chatGates(c.Peer).Key(uint64(c.Peer)).Stats()
	return stats.Tokens >= float64(stats.Limit.Burst-c.pass.messages)
}

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
