package invoke

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/learn"
	"github.com/weirtg/weir/ratelimit"
)

// longestLesson is the longest flood that a rate is learned from. One of an hour is a quota
// or a punishment, and no rate would have avoided it.
const longestLesson = time.Minute

// flooded tells the book of a flood, and learns from it. A method whose floods proved to be
// those of all chats need not prove it at each of them: while the rate of its category is
// one that was learned that way, the flood is taken for what the last one was.
func (l *Limiter) flooded(c *call, pass flood.Pass, notice flood.Notice) flood.Record {
	if notice.Kind != flood.FloodWait || notice.Unnumbered || notice.Wait > longestLesson || c.ridesFree() || pass.Looks() {
		return l.book.Flooded(pass, notice)
	}
	var record flood.Record
	if l.learning.isWhole(c) {
		record = l.book.FloodedWhole(pass, notice)
	} else {
		record = l.book.Flooded(pass, notice)
	}
	what := learned{category: c.Category}
	if record.Scope == flood.Chat {
		l.learning.suspect(c)
		switch {
		case !l.atRest(c):
			what = learned{chat: c.Peer}
		case !l.learning.wander(c, l.clock.Now(), record.Until):
			return record
		}
	}
	rate, news := l.taught(what, c, record)
	if what.chat == 0 {
		l.learning.proved(c, record.Widened)
	}
	if news {
		e := Event{Kind: Learned, Method: c.Method, DC: l.number(c.dc), Flood: record, Rate: rate}
		if e.Chat = what.chat; what.chat == 0 {
			e.Category = what.category
		}
		l.tell(e)
	}
	return record
}

// ridesFree reports whether a call says nothing about what goes through the bucket of its
// category: one that passes by it, as a broadcast does that pays, and one that moves files,
// of which all parts but the first do.
func (c *call) ridesFree() bool { return c.pass.common == 0 || strings.HasPrefix(c.Method, "upload.") }

// atRest reports whether the chat of a call had little else sent to it lately: a flood
// there is hardly about how much it gets. One whose own rate is known, or where no chat has
// a limit, is told apart by other means, and so is a call that passes no gate of its chat:
// the rate there is not its own.
func (l *Limiter) atRest(c *call) bool {
	if c.pass.messages == 0 {
		return true
	}
	if c.queued {
		return false
	}
	l.learning.mu.Lock()
	known := l.learning.chats[c.Peer] != nil
	l.learning.mu.Unlock()
	stats := l.chatGates(c.Peer).Key(uint64(c.Peer)).Stats()
	return !known && stats.Tokens >= float64(stats.Limit.Burst-c.pass.messages)
}

// A program that sends to one chat after the other sits out each flood before it sends to
// the next, so there are never two at a time to prove that they belong together. But
// chats at rest do not flood by turns: wanderers are how many different ones, within a
// while, are taken for a limit of all.
const (
	wanderers    = 3
	wanderWithin = time.Minute
)

// rested is a flood of a chat at rest.
type rested struct {
	method    string
	at, until time.Time
}

// refuted takes note that a call came through. Floods that stood when it was sent were not
// of all chats: the wanderer's program would have sent nothing meanwhile.
func (t *learning) refuted(c *call) {
	if !t.wandering.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.resting[c.Category], func(chat classify.Peer, r rested) bool {
		return chat != c.Peer && r.method == c.Method && r.at.Before(c.sentAt) && c.sentAt.Before(r.until)
	})
}

// wander reports whether floods wander from chat to chat, with this one.
func (t *learning) wander(c *call, now, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	resting := t.resting[c.Category]
	if resting == nil {
		resting = map[classify.Peer]rested{}
		t.resting[c.Category] = resting
	}
	maps.DeleteFunc(resting, func(_ classify.Peer, r rested) bool { return now.Sub(r.at) > wanderWithin })
	resting[c.Peer] = rested{c.Method, now, until}
	t.wandering.Store(true)
	if len(resting) < wanderers {
		return false
	}
	clear(resting)
	return true
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

// whole is what is known of a method that was limited as a whole.
type whole struct {
	category classify.Category
	last     [wanderers]classify.Peer // where it was flooded last
}

func (w *whole) at(chat classify.Peer) {
	if !slices.Contains(w.last[:], chat) {
		copy(w.last[1:], w.last[:])
		w.last[0] = chat
	}
}

// maxSuspects bounds how many floods are told to a rate late: calls that are on the wire
// together may be told waits that do not agree, before two do.
const maxSuspects = 16

// suspect is a flood that is one chat's as far as is known.
type suspect struct {
	chat classify.Peer
	call learn.Call
}

// isWhole reports whether the flood of a call is taken for its method's, unproven. One more
// in a chat where it was flooded just before is not, unless it is the same call's: it may be
// that chat's after all, and two noisy ones may have been flooded together by chance.
func (t *learning) isWhole(c *call) bool {
	if t.learned.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.whole[c.Method]
	return w.category == c.Category && (c.floods > 0 || !slices.Contains(w.last[:], c.Peer))
}

// suspect notes a flood that is one chat's as far as is known.
func (t *learning) suspect(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	narrow := append(t.narrow[c.Category], suspect{c.Peer, c.sentAs.category})
	t.narrow[c.Category] = narrow[max(0, len(narrow)-maxSuspects):]
	r := t.categories[c.Category]
	if r != nil && t.whole[c.Method].category == c.Category && c.sentAt.Before(r.over) {
		// The second flood was quicker to get here, and proved that this is not the chat's.
		r.Flooded(c.sentAs.category)
	}
}

// proved notes that a flood of the method was not that of one chat. If it took a second
// flood to see it, those before it were not either.
func (t *learning) proved(c *call, widened bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.categories[c.Category]
	if r == nil {
		return
	}
	w := t.whole[c.Method]
	w.category = c.Category
	w.at(c.Peer)
	if widened {
		for _, s := range t.narrow[c.Category] {
			w.at(s.chat)
			r.Flooded(s.call)
		}
		t.narrow[c.Category] = t.narrow[c.Category][:0]
	}
	t.whole[c.Method] = w
}

// methods are those that were limited as a whole in a category.
func (t *learning) methods(category classify.Category) (methods []string) {
	for method, w := range t.whole {
		if w.category == category {
			methods = append(methods, method)
		}
	}
	slices.Sort(methods)
	return methods
}

// taught lowers the rate of what was flooded, and returns it. news is false for a flood of
// which the rate knew.
func (l *Limiter) taught(what learned, c *call, record flood.Record) (perSecond float64, news bool) {
	t := &l.learning
	if t.off {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.find(what) == nil
	rate := l.rateLocked(what, 0)
	if rate == nil {
		return 0, false
	}
	as := c.sentAs.category
	if what.chat != 0 {
		if as = c.sentAs.chat; c.sentAs.of != rate {
			as = learn.Call{} // it is about what was forgotten
		}
	}
	if first && what.chat != 0 { // it begins with the call that was flooded
		as = sent(rate.Rate, 0, c.opt.cost, c.sentAt)
	}
	if record.Widened && c.sentAt.Before(rate.over) {
		// It tells how far that flood reaches, and nothing new of the rate, but for how many
		// of those that went out with it were refused.
		if c.sentAt.Before(rate.lowered) {
			rate.Flooded(as)
		}
		return 0, false
	}
	before := rate.State()
	if !rate.Flooded(as) {
		return 0, false
	}
	if basis := record.Key(); c.Peer != 0 && (record.Widened || basis != rate.basis) {
		rate.basis, rate.before = basis, before
	}
	rate.lowered = l.clock.Now()
	rate.over, rate.flooded, rate.leads = record.Until, rate.State().Flooded, true
	rate.rest.flooded(record.Until)
	t.note(what)
	l.tellLocked(what, ratelimit.Change{}.Inherit(ratelimit.Empty))
	return rate.PerSecond(), true
}

// takeBack undoes what was learned from a flood that was taken for one of all chats, or of
// all methods, and was not: a call came through that it would have stopped.
func (l *Limiter) takeBack(record flood.Record) {
	t := &l.learning
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.whole, record.Method)
	basis, now := record.Key(), l.clock.Now()
	for category, rate := range t.categories {
		if rate == nil || rate.basis != basis {
			continue
		}
		what, state := learned{category: classify.Category(category)}, rate.before
		state.Flooded = rate.flooded // by which other processes know what it replaces
		_ = rate.Restore(state, now)
		rate.basis, rate.over = "", time.Time{}
		rate.rest.floods = max(1, rate.rest.floods-1)
		if rate.Learned() {
			t.note(what)
			l.tellLocked(what, ratelimit.Change{})
		} else {
			l.unlearnLocked(what, now)
		}
		t.urgent.Store(true)
	}
}

// drain takes away what has gathered in the buckets of what was let go with a call.
func (l *Limiter) drain(c *call, scope flood.Scope) {
	l.learning.mu.Lock()
	defer l.learning.mu.Unlock()
	for _, category := range classify.Categories() {
		half := scope == flood.Account && category != classify.Global && reads(category) == reads(c.Category)
		if half || category == c.Category {
			l.tellLocked(learned{category: category}, ratelimit.Change{}.Inherit(ratelimit.Empty))
		}
	}
}
