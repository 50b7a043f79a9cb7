package invoke

import (
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
	// news tells that there is something to keep.
	news atomic.Bool

	mu         sync.Mutex
	configured [classify.Global + 1]ratelimit.Limit
	categories [classify.Global + 1]*learn.Rate // nil: nothing was learned
	chats      map[classify.Peer]*learn.Rate
	// whole holds the methods whose floods proved to be those of all chats. While the
	// category's rate is a learned one, their next flood need not be proven again.
	whole map[string]bool
	// dirty is what changed since it was last kept; nil if nobody keeps it.
	dirty map[learned]bool
}

// learned names a rate.
type learned struct {
	category classify.Category
	chat     classify.Peer
}

// maxLearnedChats bounds the chats whose rates are remembered.
const maxLearnedChats = 1024

// paceSteps is how many learned paces of chats there are to a factor of two: they lie 9 %
// apart. Chats of one pace share a set of gates.
const paceSteps = 8

// The paces of chats reach from 64 calls a second to one in some 17 minutes.
const (
	fastestPace = 6
	slowestPace = -10
)

// longestLesson is the longest flood that a rate is learned from. One of an hour is a quota
// or a punishment, and no rate would have avoided it.
const longestLesson = time.Minute

// PaceGate is the gate that a chat has for itself once it was flooded: the rate that it
// was seen to take, one message at a time.
const PaceGate = "learned"

func (l *Limiter) newLearning(off bool, limits [classify.Global + 1]ratelimit.Limit) error {
	l.learning = learning{
		off: off, configured: limits,
		chats: map[classify.Peer]*learn.Rate{}, whole: map[string]bool{},
	}
	if l.keeper != nil {
		l.learning.dirty = map[learned]bool{}
	}
	if off {
		return nil
	}
	for i := range (fastestPace-slowestPace)*paceSteps + 1 {
		rate := math.Exp2(fastestPace - float64(i)/paceSteps)
		gates, err := l.limiter.NewGates(PaceGate, ratelimit.Limit{Rate: rate, Burst: 1})
		if err != nil {
			return err
		}
		l.paces = append(l.paces, gates)
	}
	return nil
}

// pace is the gate of a chat that has learned its rate; ok is false for all others.
func (l *Limiter) pace(chat classify.Peer) (gate ratelimit.Gate, ok bool) {
	if l.learning.learned.Load() == 0 {
		return gate, false
	}
	l.learning.mu.Lock()
	defer l.learning.mu.Unlock()
	r := l.learning.chats[chat]
	if r == nil {
		return gate, false
	}
	slower := math.Ceil((fastestPace - math.Log2(r.PerSecond())) * paceSteps)
	return l.paces[min(max(0, int(slower)), len(l.paces)-1)].Key(uint64(chat)), true
}

// flooded tells the book of a flood, and learns from it. A method whose floods proved to be
// those of all chats need not prove it at each of them: while the rate of its category is
// one that was learned that way, the flood is taken for what the last one was.
func (l *Limiter) flooded(c *call, pass flood.Pass, notice flood.Notice) flood.Record {
	now := l.clock.Now()
	if notice.Kind != flood.FloodWait || notice.Wait > longestLesson || c.Part {
		return l.book.Flooded(pass, notice)
	}
	var record flood.Record
	if l.learning.isWhole(c.Method, c.Category) {
		record = l.book.FloodedWhole(pass, notice)
	} else {
		record = l.book.Flooded(pass, notice)
	}
	what, ceiling := learned{category: c.Category}, 0.0
	if record.Scope == flood.Chat {
		if ceiling = l.chatCeiling(c.Peer); ceiling == 0 {
			return record // chats have no limits here
		}
		what = learned{chat: c.Peer}
	}
	rate, news := l.taught(what, ceiling, now, c.sentAt)
	if record.Scope != flood.Chat {
		l.learning.proved(c.Method, c.Category)
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

// chatCeiling is what a chat is limited to in calls a second, 0 if it is not.
func (l *Limiter) chatCeiling(chat classify.Peer) float64 {
	if !l.limitsChats() {
		return 0
	}
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
	return t.whole[method] && t.categories[category] != nil
}

// proved notes that a flood of the method was not that of one chat.
func (t *learning) proved(method string, category classify.Category) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.categories[category] != nil { // and is forgotten with it
		t.whole[method] = true
	}
}

// taught lowers the rate of what was flooded, and returns it. news is false for a flood of
// which the rate knew.
func (l *Limiter) taught(what learned, ceiling float64, now, sent time.Time) (perSecond float64, news bool) {
	t := &l.learning
	if t.off {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rate := t.rate(what, ceiling)
	if rate == nil || !rate.Flooded(now, sent) {
		return 0, false
	}
	t.note(what)
	if what.chat == 0 {
		l.tellLocked(what.category, ratelimit.Change{}.Inherit(ratelimit.Empty))
	}
	return rate.PerSecond(), true
}

// drain takes away what has gathered in the bucket of a category.
func (l *Limiter) drain(category classify.Category) {
	l.learning.mu.Lock()
	defer l.learning.mu.Unlock()
	l.tellLocked(category, ratelimit.Change{}.Inherit(ratelimit.Empty))
}

// rate returns the rate of a category or chat, a new one if there is none. It returns nil
// where nothing can be learned.
func (t *learning) rate(what learned, ceiling float64) *learn.Rate {
	if r := t.find(what); r != nil {
		return r
	}
	if what.chat == 0 {
		ceiling = t.configured[what.category].Rate
	}
	r, err := learn.New(ceiling, learn.Options{})
	if err != nil {
		return nil // the limit is paused
	}
	if what.chat == 0 {
		t.categories[what.category] = r
	} else {
		if len(t.chats) >= maxLearnedChats {
			for chat := range t.chats { // any: the floods themselves are known apart from it
				delete(t.chats, chat)
				break
			}
		}
		t.chats[what.chat] = r
	}
	t.count()
	return r
}

func (t *learning) find(what learned) *learn.Rate {
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

// used lets the rates of a call grow that went out at now.
func (l *Limiter) used(c classify.Call, now time.Time) {
	t := &l.learning
	if t.learned.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, what := range [...]learned{{category: c.Category}, {chat: c.Peer}} {
		r := t.find(what)
		if r == nil || what == (learned{}) {
			continue
		}
		if moved := r.Sent(now); moved {
			t.note(what)
			if what.chat == 0 {
				l.tellLocked(what.category, ratelimit.Change{})
			}
		}
		if !r.Learned() {
			t.forget(what)
		}
	}
}

// note marks a rate as one to be kept, or to be forgotten where it is kept.
func (t *learning) note(what learned) {
	if t.dirty != nil {
		t.dirty[what] = true
		t.news.Store(true)
	}
}

// forget drops a rate that is back at its ceiling.
func (t *learning) forget(what learned) {
	if what.chat != 0 {
		delete(t.chats, what.chat)
	} else {
		t.categories[what.category] = nil
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

// tellLocked tells the limiter what a category keeps to now. The learning's lock is held,
// so that the last word is the latest.
func (l *Limiter) tellLocked(category classify.Category, change ratelimit.Change) {
	limit := l.learning.effective(category)
	// It cannot fail: a part of a limit that was taken is one that is taken.
	_ = l.limiter.Update(map[ratelimit.Gate]ratelimit.Change{
		l.gates[category]: change.Rate(limit.Rate).Burst(limit.Burst),
	})
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
			t.note(learned{category: classify.Category(category)})
			t.forget(learned{category: classify.Category(category)})
			l.tellLocked(classify.Category(category), ratelimit.Change{})
		}
	}
	for chat := range t.chats {
		t.note(learned{chat: chat})
		t.forget(learned{chat: chat})
	}
	clear(t.whole)
}
