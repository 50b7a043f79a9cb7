package floods

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
)

// history is what floods of single chats have shown about their methods, beyond the floods
// that stand. The mutex of the tracker guards it, except atRest.
type history struct {
	// atRest is how many floods of chats at rest are remembered.
	atRest atomic.Int64
	// quiet are those floods, by category and chat.
	quiet [classify.Global + 1]map[int64]quietFlood
	// narrow are the last floods of single chats, as far as was known.
	narrow [classify.Global + 1][]int64
	// whole are the methods whose floods have proved to be those of all chats.
	whole map[string]whole
}

const (
	// longestEvidence is the longest flood that shows how a method is limited. One of an hour
	// is a quota or a punishment.
	longestEvidence = time.Minute

	// A program that sends to one chat after the other sits out each flood before it sends to
	// the next, so no two stand at a time to prove that they belong together. But chats at
	// rest do not flood by turns: floods of wanderers different ones within wanderWithin are
	// taken for a limit of all.
	wanderers    = 3
	wanderWithin = time.Minute

	// wholeFor is how long a method counts as limited as a whole after the last flood of all
	// chats. By then any limit of seconds or minutes has filled up again.
	wholeFor = 10 * time.Minute
)

// quietFlood is a flood of a chat at rest.
type quietFlood struct {
	method    string
	at, until moment
}

// moment is a time in milliseconds since the tracker was made. It wraps after 49 days, which no
// difference that matters here comes near.
type moment uint32

func (t *Tracker) moment(at time.Time) moment {
	return max(1, moment(at.Sub(t.epoch).Milliseconds()))
}

// after returns how much later m is than other, below zero if it is earlier.
func (m moment) after(other moment) time.Duration {
	return time.Duration(int32(m-other)) * time.Millisecond
}

// whole is what is known of a method that was limited as a whole.
type whole struct {
	category classify.Category
	last     [wanderers]int64 // the chats where it was flooded last
	at       time.Time        // when it was flooded last
}

func (w *whole) flooded(chat int64) {
	if !slices.Contains(w.last[:], chat) {
		copy(w.last[1:], w.last[:])
		w.last[0] = chat
	}
}

func newHistory() history { return history{whole: map[string]whole{}} }

// counts reports whether a flood shows anything about how its method is limited. A probe that
// is flooded before the deadline shows nothing new.
func (c Call) counts(n flood.Notice, pass Pass) bool {
	return c.Category != 0 && n.Kind == flood.FloodWait && !n.Unnumbered && n.Wait <= longestEvidence && !pass.early()
}

// passed notes that a call came through. Floods of other chats that stood when it was sent
// were not of all chats: a program that sends to one after the other would have sent nothing.
func (h *history) passed(pass Pass) {
	c := pass.Call
	if pass.sentAt == 0 || len(h.quiet[c.Category]) == 0 {
		return
	}
	before := len(h.quiet[c.Category])
	maps.DeleteFunc(h.quiet[c.Category], func(chat int64, q quietFlood) bool {
		return chat != c.Chat && q.method == c.Method && pass.sentAt.after(q.at) > 0 && q.until.after(pass.sentAt) > 0
	})
	h.atRest.Add(int64(len(h.quiet[c.Category]) - before))
}

// wanders reports whether floods wander from chat to chat, including this one.
func (h *history) wanders(c Call, now, until moment) bool {
	quiet := h.quiet[c.Category]
	if quiet == nil {
		quiet = map[int64]quietFlood{}
		h.quiet[c.Category] = quiet
	}
	before := len(quiet)
	maps.DeleteFunc(quiet, func(_ int64, q quietFlood) bool { return now.after(q.at) > wanderWithin })
	quiet[c.Chat] = quietFlood{c.Method, now, until}
	enough := len(quiet) >= wanderers
	if enough {
		clear(quiet)
	}
	h.atRest.Add(int64(len(quiet) - before))
	return enough
}

// isWhole reports whether floods of the call's method have lately proved to be those of all
// chats.
func (h *history) isWhole(c Call, now time.Time) bool {
	w, ok := h.whole[c.Method]
	return ok && w.category == c.Category && now.Sub(w.at) <= wholeFor
}

// widens reports whether the flood of a call is taken for its method's without another one
// that proves it. A flood in a chat where the method was flooded just before is not, unless
// the call itself was: it may be that chat's after all, and two noisy chats may have been
// flooded together by chance.
func (h *history) widens(c Call, now time.Time) bool {
	w := h.whole[c.Method]
	return h.isWhole(c, now) && (c.Retried || !slices.Contains(w.last[:], c.Chat))
}

// narrowed notes a flood that is one chat's as far as is known.
func (h *history) narrowed(c Call) {
	narrow := append(h.narrow[c.Category], c.Chat)
	h.narrow[c.Category] = narrow[max(0, len(narrow)-wanderers):]
}

// proved notes that a flood of the method was not that of one chat. If a second flood was
// needed to see it, those before it were not either.
func (h *history) proved(c Call, now time.Time, widened bool) {
	if !h.isWhole(c, now) {
		delete(h.whole, c.Method)
	}
	w := h.whole[c.Method]
	w.category, w.at = c.Category, now
	w.flooded(c.Chat)
	if widened {
		for _, chat := range h.narrow[c.Category] {
			w.flooded(chat)
		}
		h.narrow[c.Category] = h.narrow[c.Category][:0]
	}
	h.whole[c.Method] = w
}

// disproved forgets that floods of a method were those of all chats.
func (h *history) disproved(method string) { delete(h.whole, method) }

// weigh decides what the flood of a call says, beyond which calls it holds back.
func (t *Tracker) weigh(rec *flood.Record, c Call, now time.Time) {
	h := &t.history
	rec.Evidence = true
	if rec.Scope != flood.Chat {
		rec.About = rec.Scope
	} else {
		h.narrowed(c)
		rec.Known = h.isWhole(c, now)
		switch {
		case !c.Quiet:
			rec.About = flood.Chat
		case h.wanders(c, t.moment(now), t.moment(rec.Until)):
			rec.About = flood.Method
		}
	}
	if rec.About > flood.Chat {
		h.proved(c, now, rec.Widened)
	}
}

// ForgetHistory forgets which methods have proved to be limited in all chats together. Floods
// that stand go on.
func (t *Tracker) ForgetHistory() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.history.whole)
}
