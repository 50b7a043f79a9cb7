package invoke

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/learn"
	"github.com/weirtg/weir/ratelimit"
)

// LearnedRate is a limit that floods have lowered, see [Limiter.Learned].
type LearnedRate struct {
	Category classify.Category // 0 for that of a chat
	Chat     classify.Peer     // 0 for that of a category
	Rate     float64           // what is kept to now, in calls a second
	Ceiling  float64           // what is configured
}

// learning holds the rates that floods have taught, by category and by chat. They never
// exceed what is configured.
type learning struct {
	off bool

	// learned is how many rates there are, for those who want to know without the mutex.
	learned atomic.Int64
	// news tells that there is something to keep, urgent that it is not to wait.
	news, urgent atomic.Bool

	mu         sync.Mutex
	configured [classify.Global + 1]ratelimit.Limit
	categories [classify.Global + 1]*lesson // nil: nothing was learned
	// unlearned count the calls of those categories, since the burst that led to the first
	// flood is what tells how much the server takes at once. nil if they are paused.
	unlearned [classify.Global + 1]*learn.Rate
	// narrow is the last call that was flooded in its chat alone, as far as was known.
	narrow [classify.Global + 1]learn.Call
	// resting are the chats at rest that were flooded last.
	resting [classify.Global + 1]map[classify.Peer]time.Time
	chats   map[classify.Peer]*lesson
	// spare are the gates of chats that were forgotten. There are never more gates than
	// chats are remembered at a time.
	spare []*ratelimit.Gates
	// whole holds the methods whose floods proved to be those of all chats. For as long as
	// the rate of their category is a learned one, the next flood need not be proven again.
	whole map[string]classify.Category
	// dirty is what changed since it was last kept; nil if nobody keeps it.
	dirty map[learned]bool
}

// lesson is a rate that was learned.
type lesson struct {
	*learn.Rate
	told float64          // what the limiter was told of it last
	at   time.Time        // when the last call went out
	over time.Time        // when the flood is that taught it last
	pace *ratelimit.Gates // of a chat: a gate of its own

	// Of the processes that share the rate, the one that met the last flood leads, and the
	// others follow what it tells. heard is when that was.
	leads bool
	heard time.Time
}

// leaderLost is how long a process that leads may be silent before another goes on alone.
const leaderLost = 30 * time.Second

// learned names a rate.
type learned struct {
	category classify.Category
	chat     classify.Peer
}

// maxLearnedChats bounds the chats whose rates are remembered.
const maxLearnedChats = 1024

// longestLesson is the longest flood that a rate is learned from. One of an hour is a quota
// or a punishment, and no rate would have avoided it.
const longestLesson = time.Minute

// PaceGate is the gate that a chat has for itself once it was flooded: the rate that it
// was seen to take, one message at a time.
const PaceGate = "learned"

func (l *Limiter) newLearning(off bool, limits [classify.Global + 1]ratelimit.Limit) {
	l.learning = learning{off: off, configured: limits, chats: map[classify.Peer]*lesson{}, whole: map[string]classify.Category{}}
	if l.keeper != nil {
		l.learning.dirty = map[learned]bool{}
	}
	for _, category := range classify.Categories() {
		l.learning.begin(category)
	}
}

// begin counts the calls of a category of which nothing is known.
func (t *learning) begin(category classify.Category) {
	t.unlearned[category] = nil
	if rate, err := learn.New(t.configured[category].Rate, learn.Options{}); err == nil { // else it is paused
		t.unlearned[category] = rate
	}
}

// pace is the gate of a chat that has learned its rate; ok is false for all others.
func (l *Limiter) pace(chat classify.Peer) (gate ratelimit.Gate, ok bool) {
	t := &l.learning
	if t.learned.Load() == 0 {
		return gate, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.chats[chat]
	if r == nil {
		return gate, false
	}
	return r.pace.Key(uint64(chat)), true
}

// flooded tells the book of a flood, and learns from it. A method whose floods proved to be
// those of all chats need not prove it at each of them: while the rate of its category is
// one that was learned that way, the flood is taken for what the last one was.
func (l *Limiter) flooded(c *call, pass flood.Pass, notice flood.Notice) flood.Record {
	if notice.Kind != flood.FloodWait || notice.Wait > longestLesson || ridesFree(c.Method) {
		return l.book.Flooded(pass, notice)
	}
	var record flood.Record
	if l.learning.isWhole(c.Method, c.Category) {
		record = l.book.FloodedWhole(pass, notice)
	} else {
		record = l.book.Flooded(pass, notice)
	}
	what, as := learned{category: c.Category}, c.sentAs.category
	if record.Scope == flood.Chat {
		l.learning.suspect(c)
		switch {
		case !l.atRest(c):
			what, as = learned{chat: c.Peer}, c.sentAs.chat
		case !l.learning.wander(c):
			return record
		}
	}
	rate, news := l.taught(what, as, c.sentAt, record)
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

// ridesFree reports whether a method moves files. All parts but the first pass the buckets
// free, so their floods say nothing about what goes through the buckets.
func ridesFree(method string) bool { return strings.HasPrefix(method, "upload.") }

// atRest reports whether the chat of a call had little else sent to it lately: a flood
// there is hardly about how much it gets. One whose own rate is known, or where no chat has
// a limit, is told apart by other means.
func (l *Limiter) atRest(c *call) bool {
	if !l.limitsChats() {
		return true
	}
	l.learning.mu.Lock()
	known := l.learning.chats[c.Peer] != nil
	l.learning.mu.Unlock()
	stats := l.chatGates(c.Peer).Key(uint64(c.Peer)).Stats()
	return !known && stats.Tokens >= float64(stats.Limit.Burst-1)
}

// A program that sends to one chat after the other sits out each flood before it sends to
// the next, so there are never two at a time to prove that they belong together. But
// chats at rest do not flood by turns: wanderers are how many different ones, within a
// while, are taken for a limit of all.
const (
	wanderers    = 3
	wanderWithin = time.Minute
)

// wander reports whether floods wander from chat to chat, with this one.
func (t *learning) wander(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	resting := t.resting[c.Category]
	if resting == nil {
		resting = map[classify.Peer]time.Time{}
		t.resting[c.Category] = resting
	}
	maps.DeleteFunc(resting, func(_ classify.Peer, at time.Time) bool { return c.sentAt.Sub(at) > wanderWithin })
	resting[c.Peer] = c.sentAt
	if len(resting) < wanderers {
		return false
	}
	clear(resting)
	return true
}

// chatCeiling is what a chat is limited to in calls a second.
func (l *Limiter) chatCeiling(chat classify.Peer) float64 {
	switch rule := l.chatGates(chat).Rule().(type) {
	case ratelimit.Limit:
		return rule.Rate
	case ratelimit.Window:
		return float64(rule.Limit) / rule.Period.Seconds()
	}
	return 0
}

func (t *learning) isWhole(method string, category classify.Category) bool {
	if t.learned.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whole[method] == category
}

// suspect notes a flood that is one chat's as far as is known.
func (t *learning) suspect(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.narrow[c.Category] = c.sentAs.category
}

// proved notes that a flood of the method was not that of one chat. If it took a second
// flood to see it, the first was not either.
func (t *learning) proved(c *call, widened bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.categories[c.Category]
	if r == nil {
		return
	}
	t.whole[c.Method] = c.Category
	if widened {
		r.Flooded(t.narrow[c.Category])
	}
}

// methods are those that were limited as a whole in a category.
func (t *learning) methods(category classify.Category) (methods []string) {
	for method, of := range t.whole {
		if of == category {
			methods = append(methods, method)
		}
	}
	slices.Sort(methods)
	return methods
}

// taught lowers the rate of what was flooded, and returns it. news is false for a flood of
// which the rate knew.
func (l *Limiter) taught(what learned, as learn.Call, sent time.Time, record flood.Record) (perSecond float64, news bool) {
	t := &l.learning
	if t.off {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.find(what) == nil
	rate := l.rateLocked(what)
	if rate == nil {
		return 0, false
	}
	if first && what.chat != 0 { // it begins with the call that was flooded
		as = rate.Sent(sent)
	}
	if record.Widened && sent.Before(rate.over) {
		return 0, false // it tells how far that flood reaches, and nothing new of the rate
	}
	if !rate.Flooded(as) {
		return 0, false
	}
	rate.over, rate.leads = record.Until, true
	t.note(what)
	l.tellLocked(what, ratelimit.Change{}.Inherit(ratelimit.Empty))
	return rate.PerSecond(), true
}

// drain takes away what has gathered in the bucket of a category.
func (l *Limiter) drain(category classify.Category) {
	l.learning.mu.Lock()
	defer l.learning.mu.Unlock()
	l.tellLocked(learned{category: category}, ratelimit.Change{}.Inherit(ratelimit.Empty))
}

// rateLocked returns the rate of a category or chat, a new one if there is none. It returns
// nil where nothing can be learned.
func (l *Limiter) rateLocked(what learned) *lesson {
	t := &l.learning
	if r := t.find(what); r != nil {
		return r
	}
	if what.chat == 0 {
		if t.unlearned[what.category] == nil {
			return nil // the limit is paused
		}
		r := &lesson{Rate: t.unlearned[what.category]}
		t.categories[what.category] = r
		t.count()
		return r
	}
	ceiling := l.chatCeiling(what.chat)
	rate, err := learn.New(ceiling, learn.Options{})
	if err != nil {
		return nil // no rate at all
	}
	r := &lesson{Rate: rate}
	if len(t.chats) >= maxLearnedChats {
		for chat := range t.chats { // any: the floods themselves are known apart from it
			t.forget(learned{chat: chat})
			break
		}
	}
	if n := len(t.spare); n > 0 {
		r.pace, t.spare = t.spare[n-1], t.spare[:n-1]
	} else if r.pace, err = l.paces.Another(ratelimit.Limit{Rate: ceiling, Burst: 1}); err != nil {
		return nil // no rate for a gate
	}
	t.chats[what.chat] = r
	t.count()
	return r
}

func (t *learning) find(what learned) *lesson {
	if what.chat != 0 {
		return t.chats[what.chat]
	}
	return t.categories[what.category]
}

func (t *learning) count() {
	n := len(t.chats)
	for _, r := range t.categories {
		if r != nil {
			n++
		}
	}
	t.learned.Store(int64(n))
}

// sentAs is a call as the rates that concern it have seen it go out.
type sentAs struct{ category, chat learn.Call }

// sending lets the rates of a call grow by it, which goes out now.
func (l *Limiter) sending(c classify.Call, now time.Time) (as sentAs) {
	t := &l.learning
	if t.off {
		return as
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	as.category = l.sentLocked(learned{category: c.Category}, now)
	if c.Peer != 0 {
		as.chat = l.sentLocked(learned{chat: c.Peer}, now)
	}
	return as
}

func (l *Limiter) sentLocked(what learned, now time.Time) (as learn.Call) {
	t := &l.learning
	r := t.find(what)
	if r == nil {
		if fresh := t.unlearned[what.category]; what.chat == 0 && fresh != nil {
			as = fresh.Sent(now)
		}
		return as
	}
	for range l.sentByAll(what, r, now) {
		as = r.Sent(now)
	}
	r.at = now
	switch {
	case !r.Learned():
		t.note(what)
		t.forget(what)
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

// note marks a rate as one to be kept, or to be forgotten where it is kept.
func (t *learning) note(what learned) {
	if t.dirty != nil {
		t.dirty[what] = true
		t.news.Store(true)
	}
}

// forget drops a rate that is back at its ceiling.
func (t *learning) forget(what learned) {
	switch r := t.find(what); {
	case r == nil:
		return
	case what.chat != 0:
		delete(t.chats, what.chat)
		t.spare = append(t.spare, r.pace)
	default:
		t.categories[what.category] = nil
		t.begin(what.category)
		maps.DeleteFunc(t.whole, func(_ string, of classify.Category) bool { return of == what.category })
	}
	t.count()
}

// effective is the limit that a category keeps to.
func (t *learning) effective(category classify.Category) ratelimit.Limit {
	limit := t.configured[category]
	if r := t.categories[category]; r != nil && !limit.Paused() {
		limit.Rate = r.PerSecond()
		limit.Burst = max(1, int(math.Round(r.Burst(float64(limit.Burst)))))
	}
	return limit
}

// tellLocked tells the limiter what a category or a chat keeps to now. The learning's lock
// is held, so that the last word is the latest.
func (l *Limiter) tellLocked(what learned, change ratelimit.Change) {
	r := l.learning.find(what)
	if r != nil {
		r.told = r.PerSecond()
	}
	gate := l.gates[what.category]
	switch {
	case what.chat == 0:
		limit := l.learning.effective(what.category)
		change = change.Rate(limit.Rate).Burst(limit.Burst)
	case r == nil:
		return // it has no pace any more
	default:
		gate, change = r.pace.Set(), change.Rate(r.told)
	}
	// It cannot fail: a part of a limit that was taken is one that is taken.
	_ = l.limiter.Update(map[ratelimit.Gate]ratelimit.Change{gate: change})
}

// Learned returns the limits that floods have lowered, those of categories first. It does
// not block.
func (l *Limiter) Learned() []LearnedRate {
	t := &l.learning
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []LearnedRate
	for category, r := range t.categories {
		if r != nil {
			all = append(all, LearnedRate{Category: classify.Category(category), Rate: r.PerSecond(), Ceiling: r.Ceiling()})
		}
	}
	for chat, r := range t.chats {
		all = append(all, LearnedRate{Chat: chat, Rate: r.PerSecond(), Ceiling: r.Ceiling()})
	}
	return all
}

// Unlearn forgets what floods have taught, and goes back to what is configured.
func (l *Limiter) Unlearn() {
	t := &l.learning
	t.mu.Lock()
	defer t.mu.Unlock()
	for category, r := range t.categories {
		if r != nil {
			what := learned{category: classify.Category(category)}
			t.note(what)
			t.forget(what)
			l.tellLocked(what, ratelimit.Change{})
		}
	}
	for chat := range t.chats {
		t.note(learned{chat: chat})
		t.forget(learned{chat: chat})
	}
}
