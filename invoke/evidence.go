package invoke

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/floods"
)

// evidence is what floods of single chats have shown about their methods, beyond the
// floods that stand.
type evidence struct {
	// wandering tells that there ever was a flood of a chat at rest.
	wandering atomic.Bool

	mu sync.Mutex
	// narrow are the chats that were flooded last, as far as was known in that chat alone.
	narrow [classify.Global + 1][]classify.Peer
	// resting are the chats at rest that were flooded last.
	resting [classify.Global + 1]map[classify.Peer]rested
	// whole holds the methods whose floods proved to be those of all chats. For as long as
	// the limit of their category is a learned one, the next flood need not be proven again.
	whole map[string]whole
}

// A program that sends to one chat after the other sits out each flood before it sends to
// the next, so there are never two at a time to prove that they belong together. But
// chats at rest do not flood by turns: floods of so many different ones, within a while,
// are taken for a limit of all.
const (
	wanderers    = 3
	wanderWithin = time.Minute
)

// rested is a flood of a chat at rest.
type rested struct {
	method    string
	at, until time.Time
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

// refuted notes that a call came through. Floods that stood when it was sent were not
// of all chats: a program that sends to one after the other would have sent nothing.
func (t *evidence) refuted(c *call) {
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
func (t *evidence) wander(c *call, now, until time.Time) bool {
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

// isWhole reports whether the flood of a call is taken for its method's, unproven. One more
// in a chat where it was flooded just before is not, unless it is the same call's: it may be
// that chat's after all, and two noisy ones may have been flooded together by chance.
func (t *evidence) isWhole(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, ok := t.whole[c.Method]
	return ok && w.category == c.Category && (c.floods > 0 || !slices.Contains(w.last[:], c.Peer))
}

// suspect notes a flood that is one chat's as far as is known, and reports whether floods of
// the method have proved to be those of all chats.
func (t *evidence) suspect(c *call) (proven bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	narrow := append(t.narrow[c.Category], c.Peer)
	t.narrow[c.Category] = narrow[max(0, len(narrow)-wanderers):]
	w, ok := t.whole[c.Method]
	return ok && w.category == c.Category
}

// proved notes that a flood of the method was not that of one chat. If it took a second
// flood to see it, those before it were not either.
func (t *evidence) proved(c *call, widened bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.whole[c.Method]
	w.category = c.Category
	w.at(c.Peer)
	if widened {
		for _, chat := range t.narrow[c.Category] {
			w.at(chat)
		}
		t.narrow[c.Category] = t.narrow[c.Category][:0]
	}
	t.whole[c.Method] = w
}

// disproved forgets that floods of a method were those of all chats; of all methods of a
// category if method is empty.
func (t *evidence) disproved(method string, category classify.Category) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.whole, func(name string, w whole) bool {
		return name == method || method == "" && w.category == category
	})
}

// atRest reports whether the chat of a call had little else sent to it lately: a flood
// there is hardly about how much it gets. A chat whose own limit is known, or where no chat
// has a limit, is told apart by other means, and so is a call that passes no gate of its
// chat: the rate there is not its own.
func (l *Limiter) atRest(c *call) bool {
	if c.pass.messages == 0 {
		return true
	}
	if c.queued {
		return false
	}
	stats := l.chatGates(c.Peer).Key(uint64(c.Peer)).Stats()
	return !l.learned.KnowsChat(c.Peer) && stats.Tokens >= float64(stats.Limit.Burst-c.pass.messages)
}

// flooded records a flood, and lowers the limit of what it is about. A method whose floods
// proved to be those of all chats need not prove it at each of them.
func (l *Limiter) flooded(c *call, pass floods.Pass, notice flood.Notice) flood.Record {
	if notice.Kind != flood.FloodWait || notice.Unnumbered || notice.Wait > longestLesson || c.ridesFree() || pass.Looks() {
		return l.tracker.Flooded(pass, notice)
	}
	var record flood.Record
	if !l.learned.KnowsCategory(c.Category) {
		l.evidence.disproved("", c.Category) // it has been forgotten with the limit
		record = l.tracker.Flooded(pass, notice)
	} else if l.evidence.isWhole(c) {
		record = l.tracker.FloodedWhole(pass, notice)
	} else {
		record = l.tracker.Flooded(pass, notice)
	}
	teaches, counted := l.teaches(c, record), c.counted()
	rate, lowered := l.learned.Flooded(counted, c.mark, record, teaches)
	if record.Scope == flood.Chat && l.evidence.suspect(c) {
		l.learned.FloodedLate(counted, c.mark)
	}
	if teaches == adapt.Category {
		l.evidence.proved(c, record.Widened)
	}
	if lowered {
		e := Event{Kind: Learned, Method: c.Method, DC: l.number(c.dc), Flood: record, Rate: rate}
		if e.Chat = c.Peer; teaches == adapt.Category {
			e.Chat, e.Category = 0, c.Category
		}
		l.tell(e)
	}
	return record
}

// teaches says whose limit a flood lowers.
func (l *Limiter) teaches(c *call, record flood.Record) adapt.Teaches {
	switch {
	case record.Scope != flood.Chat:
		return adapt.Category
	case !l.atRest(c):
		return adapt.Chat
	case l.evidence.wander(c, l.clock.Now(), record.Until):
		return adapt.Category
	default:
		return adapt.Nothing
	}
}
