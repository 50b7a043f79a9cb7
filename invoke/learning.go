package invoke

import (
	"cmp"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/classify"
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
	// wandering tells that there ever was a flood of a chat at rest.
	wandering atomic.Bool

	mu         sync.Mutex
	configured [classify.Global + 1]ratelimit.Limit
	categories [classify.Global + 1]*lesson // nil: nothing was learned
	// unlearned count the calls of those categories, since the burst that led to the first
	// flood is what tells how much the server takes at once. nil if they have been paused
	// from the beginning.
	unlearned [classify.Global + 1]*learn.Rate
	// others is how many calls of other processes they have counted.
	others [classify.Global + 1]float64
	// room is the most that a call of each category has cost: what it is to have room for.
	room [classify.Global + 1]int
	// narrow are the last calls that were flooded in their chats alone, as far as was known.
	narrow [classify.Global + 1][]suspect
	// resting are the chats at rest that were flooded last.
	resting [classify.Global + 1]map[classify.Peer]rested
	chats   map[classify.Peer]*lesson
	// spare are the gates of chats that were forgotten. There are never more gates than
	// chats are remembered at a time.
	spare []*ratelimit.Gates
	// whole holds the methods whose floods proved to be those of all chats. For as long as
	// the rate of their category is a learned one, the next flood need not be proven again.
	whole map[string]whole
	// dirty is what changed since it was last kept; nil if nobody keeps it.
	dirty map[learned]bool
	// forgotten are the rates that were forgotten lately. A store may still tell of them.
	forgotten map[learned]forgotten
}

// forgotten is a rate that was: the flood that it was learned from last, and when it ended.
type forgotten struct{ flooded, at time.Time }

// lesson is a rate that was learned.
type lesson struct {
	*learn.Rate
	told float64   // what the limiter was told of it last
	over time.Time // when the flood is that taught it last
	rest rest
	// lowered is when that flood was told: what was sent before it is part of it.
	lowered time.Time
	// flooded is when the call went out that met it, by which stored rates are told apart.
	flooded time.Time
	pace    *ratelimit.Gates // of a chat: a gate of its own, …
	room    int              // … with room for a call that costs so much
	// others is how many calls of other processes it has counted.
	others float64

	// basis is the key of the flood that taught it last, if it was met in one chat and taken
	// for more than that chat's, and before is what had been learned until then.
	basis  string
	before learn.State

	// Of the processes that share the rate, the one that met the last flood leads, and the
	// others follow what it tells. heard is when that was.
	leads bool
	heard time.Time
}

// learned names a rate.
type learned struct {
	category classify.Category
	chat     classify.Peer
}

// maxLearnedChats bounds the chats whose rates are remembered.
const maxLearnedChats = 1024

// PaceGate is the gate that a chat has for itself once it was flooded: the rate that it
// was seen to take, one message at a time.
const PaceGate = "learned"

func (l *Limiter) newLearning(off bool, limits [classify.Global + 1]ratelimit.Limit) {
	l.learning = learning{
		off: off, configured: limits,
		chats: map[classify.Peer]*lesson{}, whole: map[string]whole{}, forgotten: map[learned]forgotten{},
	}
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

// rateLocked returns the rate of a category or chat, a new one if there is none. It returns
// nil where nothing can be learned. While the limit is paused, held is all that is known of
// a ceiling, 0 for nothing.
func (l *Limiter) rateLocked(what learned, held float64) *lesson {
	t := &l.learning
	if r := t.find(what); r != nil {
		return r
	}
	if what.chat == 0 {
		if t.unlearned[what.category] == nil {
			rate, err := learn.New(held, learn.Options{})
			if err != nil {
				return nil
			}
			t.unlearned[what.category] = rate
		}
		r := &lesson{Rate: t.unlearned[what.category], others: t.others[what.category]}
		t.categories[what.category] = r
		t.count()
		return r
	}
	ceiling := cmp.Or(l.chatLimit(what.chat).Rate, held)
	rate, err := learn.New(ceiling, learn.Options{})
	if err != nil {
		return nil // no rate at all
	}
	r := &lesson{Rate: rate}
	if len(t.chats) >= maxLearnedChats {
		for chat := range t.chats { // any: the floods themselves are known apart from it
			t.note(learned{chat: chat}) // in a month of them, what is kept would be too much to be read at once
			l.forgetLocked(learned{chat: chat})
			break
		}
	}
	if n := len(t.spare); n > 0 {
		r.pace, t.spare = t.spare[n-1], t.spare[:n-1]
	} else if r.pace, err = l.paces.Another(ratelimit.Limit{Rate: ceiling, Burst: 1}); err != nil {
		return nil // no rate for a gate
	}
	r.others = r.pace.Set().Others()
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

// note marks a rate as one to be kept, or to be forgotten where it is kept.
func (t *learning) note(what learned) {
	if t.dirty != nil {
		t.dirty[what] = true
		t.news.Store(true)
	}
}

// echo is how long after a change a store may still tell what was before it.
const echo = time.Minute

// unlearnLocked forgets a rate, here and where it is kept.
func (l *Limiter) unlearnLocked(what learned, now time.Time) {
	t := &l.learning
	maps.DeleteFunc(t.forgotten, func(_ learned, f forgotten) bool { return now.Sub(f.at) > echo })
	t.forgotten[what] = forgotten{t.find(what).flooded, now}
	t.note(what)
	l.forgetLocked(what)
	l.tellLocked(what, ratelimit.Change{})
}

// forgetLocked drops a rate, and lets those that wait for it go on at the ceiling.
func (l *Limiter) forgetLocked(what learned) {
	t := &l.learning
	switch r := t.find(what); {
	case r == nil:
		return
	case what.chat != 0:
		delete(t.chats, what.chat)
		t.spare = append(t.spare, r.pace)
		_ = l.limiter.Update(map[ratelimit.Gate]ratelimit.Change{r.pace.Set(): ratelimit.Rate(r.Ceiling())})
	default:
		if r.Learned() { // what is on the wire teaches nothing any more
			_ = r.Restore(learn.State{}, time.Time{})
		}
		t.categories[what.category], t.others[what.category] = nil, r.others
		maps.DeleteFunc(t.whole, func(_ string, w whole) bool { return w.category == what.category })
	}
	t.count()
}

// effective is the limit that a category keeps to.
func (t *learning) effective(category classify.Category) ratelimit.Limit {
	limit := t.configured[category]
	if r := t.categories[category]; r != nil && !limit.Paused() {
		limit.Rate = min(limit.Rate, r.PerSecond()) // one in months is too little to be a ceiling to learn below
		learned := int(math.Round(r.Burst(float64(limit.Burst))))
		limit.Burst = max(1, learned, min(limit.Burst, t.room[category]))
	}
	return limit
}

// makeRoom sees to it that a call which costs more than one token fits in what floods make of
// its gates, which is no more than a server takes at once. It may be that of one token. One
// that costs more than is configured will be refused, and needs no room.
func (l *Limiter) makeRoom(c *call) {
	if c.opt.cost == 1 {
		return
	}
	t := &l.learning
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, category := range [...]classify.Category{c.Category, classify.Global} {
		if burst := t.configured[category].Burst; burst > 0 && c.opt.cost > burst { // 0 is a pause, behind which it waits
			return
		}
	}
	if c.pass.messages > 0 {
		if burst := l.chatLimit(c.Peer).Burst; burst > 0 && c.opt.cost > burst {
			return
		}
	}
	if t.room[c.Category] < c.opt.cost {
		t.room[c.Category] = c.opt.cost
		l.tellLocked(learned{category: c.Category}, ratelimit.Change{})
	}
	if r := t.chats[c.Peer]; r != nil && c.pass.messages > 0 && r.room < c.opt.cost {
		r.room = c.opt.cost
		l.tellLocked(learned{chat: c.Peer}, ratelimit.Change{})
	}
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
		gate, change = r.pace.Set(), change.Rate(r.told).Burst(max(1, r.room))
	}
	// It cannot fail: a part of a limit that was taken is one that is taken.
	_ = l.limiter.Update(map[ratelimit.Gate]ratelimit.Change{gate: change})
}

// Learned returns the limits that floods have lowered, those of categories first. It does
// not block.
func (l *Limiter) Learned() []LearnedRate {
	l.forgetAllRested()
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
	now := l.clock.Now()
	for category, r := range t.categories {
		if r != nil {
			l.unlearnLocked(learned{category: classify.Category(category)}, now)
		}
	}
	for chat := range t.chats {
		l.unlearnLocked(learned{chat: chat}, now)
	}
}
