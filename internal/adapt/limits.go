package adapt

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/internal/learn"
	"github.com/weirtg/weir/ratelimit"
)

// Options of [Limits].
type Options struct {
	Clock clock.Clock
	// Off teaches nothing: limits stay as they are configured.
	Off bool
	// Configured are the limits of the categories, which nothing that is learned exceeds,
	// and Gates their gates.
	Configured [classify.Global + 1]ratelimit.Limit
	Gates      [classify.Global + 1]ratelimit.Gate
	Limiter    *ratelimit.Limiter
	// Paces is the set of gates that chats with a learned limit pass.
	Paces *ratelimit.Gates
	// ChatLimit returns the configured limit of a chat.
	ChatLimit func(classify.Peer) ratelimit.Limit
	// Shares tells that the gates are those of several processes.
	Shares bool
	// Journal is where limits that change are noted; nil if nobody keeps them.
	Journal Journal
}

// Journal notes which facts have changed. Its methods are called under the lock of the
// limits, and must not block.
type Journal interface {
	// Mark notes a limit that was learned or has changed. What only grew is not urgent.
	Mark(key string, urgent bool)
	// Ended notes that a limit was forgotten, and when it was learned.
	Ended(key string, began time.Time)
}

// Call is what [Limits] have to know of a call.
type Call struct {
	Category classify.Category
	Chat     classify.Peer
	Method   string
	Cost     int
	// Messages is what the call counts for at the gate of its chat, 0 if it passes none.
	Messages int
}

// Mark is a call as the limits that concern it have seen it go out.
type Mark struct {
	at             time.Time
	category, chat learn.Call
	of             *lesson // the chat's; calls are numbered by each anew
}

// Rate is a limit that floods have lowered.
type Rate struct {
	Category classify.Category // 0 for that of a chat
	Chat     classify.Peer     // 0 for that of a category
	Rate     float64           // what is kept to now, in calls a second
	Ceiling  float64           // what is configured
}

// Limits are the limits that floods have taught. They are safe for concurrent use.
type Limits struct {
	opts Options

	// learned is how many limits were learned, readable without the mutex.
	learned atomic.Int64

	mu         sync.Mutex
	configured [classify.Global + 1]ratelimit.Limit
	categories [classify.Global + 1]*lesson // nil: nothing was learned
	// unlearned count the calls of those categories, since the burst that led to the first
	// flood is what tells how much the server takes at once. nil if they have been paused
	// from the beginning.
	unlearned [classify.Global + 1]*learn.Rate
	// others is how many calls of other processes they have counted.
	others [classify.Global + 1]float64
	// room is the most that a call of each category has cost: the least burst.
	room [classify.Global + 1]int
	// narrow are the last calls that were flooded in their chats alone, as far as was known.
	narrow [classify.Global + 1][]learn.Call
	chats  map[classify.Peer]*lesson
	// spare are the gates of chats that were forgotten. There are never more gates than
	// chats are remembered at a time.
	spare []*ratelimit.Gates
}

// lesson is a limit that was learned.
type lesson struct {
	*learn.Rate
	told float64   // what its gate was set to last
	over time.Time // when the flood is over that taught it last
	rest rest
	// lowered is when that flood was answered: what was sent before is part of it.
	lowered time.Time
	// flooded is when the call went out that met it, by which stored limits are told apart.
	flooded time.Time
	pace    *ratelimit.Gates // of a chat: a gate of its own
	room    int              // its least burst
	// others is how many calls of other processes it has counted.
	others float64

	// basis is the key of the flood that taught it last, if that was met in one chat and
	// taken for more than that chat's, and before is what had been learned until then.
	basis  string
	before learn.State

	// Of the processes that share the limit, the one that met the last flood leads, and
	// the others follow. heard is when one that follows last heard of it.
	leads bool
	heard time.Time
}

// subject names what a limit is for.
type subject struct {
	category classify.Category
	chat     classify.Peer
}

// maxChats bounds the chats whose limits are remembered.
const maxChats = 1024

// New returns limits of which none is learned.
func New(opts Options) *Limits {
	t := &Limits{opts: opts, configured: opts.Configured, chats: map[classify.Peer]*lesson{}}
	for _, category := range classify.Categories() {
		t.begin(category)
	}
	return t
}

// begin counts the calls of a category of which nothing is known.
func (t *Limits) begin(category classify.Category) {
	t.unlearned[category] = nil
	if rate, err := learn.New(t.configured[category].Rate, learn.Options{}); err == nil { // else it is paused
		t.unlearned[category] = rate
	}
}

// Learned returns the limits that floods have lowered, those of categories first. It does
// not block.
func (t *Limits) Learned() []Rate {
	t.ForgetAllRested()
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Rate
	for category, r := range t.categories {
		if r != nil {
			all = append(all, Rate{Category: classify.Category(category), Rate: r.PerSecond(), Ceiling: r.Ceiling()})
		}
	}
	for chat, r := range t.chats {
		all = append(all, Rate{Chat: chat, Rate: r.PerSecond(), Ceiling: r.Ceiling()})
	}
	return all
}

// KnowsChat reports whether floods have taught the limit of a chat.
func (t *Limits) KnowsChat(chat classify.Peer) bool { return t.knows(subject{chat: chat}) }

func (t *Limits) knows(what subject) bool {
	if t.learned.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(what) != nil
}

// Forget goes back to what is configured.
func (t *Limits) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for category, r := range t.categories {
		if r != nil {
			t.unlearn(subject{category: classify.Category(category)})
		}
	}
	for chat := range t.chats {
		t.unlearn(subject{chat: chat})
	}
}
