package invoke

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/learn"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// fact makes a fact of a value that encodes.
func fact(key string, value any, until time.Time) store.Fact {
	text, err := json.Marshal(value)
	if err != nil {
		return store.Fact{Key: key} // of a kind that there is not: nothing to remember
	}
	return store.Fact{Key: key, Value: text, Until: until}
}

// told takes in a fact that was kept, or that another process saved. One that does not
// read is ignored: it is of another version.
func (l *Limiter) told(f store.Fact) {
	switch {
	case strings.HasPrefix(f.Key, floodFact):
		var r flood.Record
		if f.Value == nil {
			for _, known := range l.book.Snapshot() {
				if known.Key() == f.Key {
					known.Until, known.Wait = time.Time{}, 0
					l.book.Restore(known)
				}
			}
		} else if json.Unmarshal(f.Value, &r) == nil {
			l.book.Restore(r)
		}
	case strings.HasPrefix(f.Key, refusalFact):
		var r flood.Refusal
		if f.Value == nil {
			for _, known := range l.guard.Snapshot() {
				if known.Key() == f.Key {
					known.At, known.Tripped = nil, time.Time{}
					l.guard.Restore(known)
				}
			}
		} else if json.Unmarshal(f.Value, &r) == nil {
			l.guard.Restore(r)
		}
	case strings.HasPrefix(f.Key, rateFact):
		l.toldRate(f)
	case strings.HasPrefix(f.Key, limitFact) && l.shares:
		var changed limit
		if json.Unmarshal(f.Value, &changed) == nil {
			l.adopt(strings.TrimPrefix(f.Key, limitFact), changed)
		}
	}
}

// key is the text under which a store keeps a learned rate.
func (what learned) key() string {
	if what.chat != 0 {
		return rateFact + "chat/" + strconv.FormatInt(int64(what.chat), 10)
	}
	return rateFact + what.category.String()
}

func learnedOf(key string) (what learned, err error) {
	name := strings.TrimPrefix(key, rateFact)
	if chat, ok := strings.CutPrefix(name, "chat/"); ok {
		id, err := strconv.ParseInt(chat, 10, 64)
		if err == nil && id == 0 {
			err = errors.New("no chat")
		}
		return learned{chat: classify.Peer(id)}, err
	}
	what.category, err = classify.ParseCategory(name)
	if what.category == classify.Global {
		err = errors.New("no category of calls") // by which it could climb back
	}
	return what, err
}

// keptRate is a learned rate as it is stored. A rate is only worth what it was learned
// below: with another ceiling it is cut to that.
type keptRate struct {
	State learn.State `json:"state"`
	Whole []string    `json:"whole,omitempty"` // methods that are limited as a whole
	Over  time.Time   `json:"over,omitzero"`   // when the flood is that taught it last

	Floods int           `json:"floods,omitempty"`  // that taught it
	Rest   time.Duration `json:"rest_ns,omitempty"` // for which it was not used since
}

func (l *Limiter) toldRate(f store.Fact) {
	what, err := learnedOf(f.Key)
	t := &l.learning
	if err != nil || t.off {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept keptRate
	known, now := t.find(what), l.clock.Now()
	if f.Value != nil && json.Unmarshal(f.Value, &kept) != nil {
		return
	}
	if f.Value != nil && known != nil && !kept.State.Flooded.After(known.State().Flooded) {
		// This process has known that flood, and has grown since, or follows.
		if l.shares && !known.leads && kept.State.Flooded.Equal(known.State().Flooded) && known.Follow(kept.State, now) == nil {
			known.heard = now
			l.tellLocked(what, ratelimit.Change{})
		}
		return
	}
	if was, ok := t.forgotten[what]; ok && f.Value != nil && !kept.State.Flooded.After(was.flooded) {
		return
	}
	settle := func() {
		delete(t.dirty, what) // it is what the store has
		l.tellLocked(what, ratelimit.Change{})
	}
	if f.Value == nil {
		l.forgetLocked(what)
		settle()
		return
	}
	rate := l.rateLocked(what, kept.State.Held)
	if rate == nil {
		return
	}
	restore := rate.Restore
	if l.shares && known != nil {
		restore = rate.Follow
	}
	if restore(kept.State, now) != nil { // a bad state changes nothing
		if known == nil {
			l.forgetLocked(what)
		}
		return
	}
	defer settle()
	if most := now.Add(longestLesson); kept.Over.After(most) {
		kept.Over = most // of another clock
	}
	rate.rest.restore(kept, now)
	rate.leads, rate.heard, rate.basis, rate.flooded, rate.over = false, now, "", kept.State.Flooded, kept.Over
	if !rate.Learned() {
		l.forgetLocked(what)
		return
	}
	if what.chat == 0 {
		for _, method := range kept.Whole[:min(len(kept.Whole), maxWhole)] {
			if len(method) <= maxMethod {
				t.whole[method] = whole{category: what.category}
			}
		}
	}
}

// maxWhole bounds the methods that are believed of a store, and maxMethod their names.
const maxWhole, maxMethod = 100, 256

// changes returns the rates that changed since the last time, as facts.
func (t *learning) changes(now time.Time) []store.Fact {
	t.mu.Lock()
	defer t.mu.Unlock()
	var facts []store.Fact
	for what := range t.dirty {
		if r := t.find(what); r != nil {
			facts = append(facts, fact(what.key(), keptRate{r.State(), t.methods(what.category), r.over.Round(0), r.rest.floods, r.rest.sum}, now.Add(rateKept)))
		} else {
			facts = append(facts, store.Fact{Key: what.key()})
		}
	}
	clear(t.dirty)
	t.news.Store(false)
	return facts
}
