package adapt

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/internal/learn"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// FactPrefix begins the keys of the facts that are learned limits.
const FactPrefix = "rate/"

const (
	// Kept is how long a learned limit is remembered: what an account may do a month later
	// is another question.
	Kept = 30 * 24 * time.Hour
	// longestFlood bounds how long the flood that taught a limit may last by what a store
	// says.
	longestFlood = time.Minute
)

// key is the text under which a store keeps a learned limit.
func (what subject) key() string {
	if what.chat != 0 {
		return FactPrefix + "chat/" + strconv.FormatInt(int64(what.chat), 10)
	}
	return FactPrefix + what.category.String()
}

func subjectOf(key string) (what subject, err error) {
	name := strings.TrimPrefix(key, FactPrefix)
	if chat, ok := strings.CutPrefix(name, "chat/"); ok {
		id, err := strconv.ParseInt(chat, 10, 64)
		if err == nil && id == 0 {
			err = errors.New("no chat")
		}
		return subject{chat: classify.Peer(id)}, err
	}
	what.category, err = classify.ParseCategory(name)
	if what.category == classify.Global {
		err = errors.New("no category of calls") // by which it could climb back
	}
	return what, err
}

// value is a learned limit as it is stored. It is worth no more than the ceiling that it
// was learned below: under another one it is cut to that.
type value struct {
	State learn.State `json:"state"`
	Over  time.Time   `json:"over,omitzero"` // when the flood is over that taught it last

	Floods int           `json:"floods,omitempty"`  // that taught it
	Rest   time.Duration `json:"rest_ns,omitempty"` // for which it was not used since
}

// News reports whether [Limits.Changes] has something to tell. urgent tells that it is
// more than the growth of a limit; asking clears it.
func (t *Limits) News() (news, urgent bool) {
	return t.news.Load(), t.urgent.Swap(false)
}

// Changes returns the limits that changed since the last time, as facts.
func (t *Limits) Changes() []store.Fact {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opts.Clock.Now()
	var facts []store.Fact
	for what := range t.dirty {
		f := store.Fact{Key: what.key()}
		if r := t.find(what); r != nil {
			f.Value, _ = json.Marshal(value{r.State(), r.over.Round(0), r.rest.floods, r.rest.sum}) // numbers and times only
			f.Until = now.Add(Kept)
		}
		facts = append(facts, f)
	}
	clear(t.dirty)
	t.news.Store(false)
	return facts
}

// Restore takes in a fact that was kept, or that another process saved. A fact that cannot
// be read is ignored.
func (t *Limits) Restore(f store.Fact) {
	what, err := subjectOf(f.Key)
	if err != nil || t.opts.Off {
		return
	}
	var told value
	if f.Value != nil && json.Unmarshal(f.Value, &told) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known, now := t.find(what), t.opts.Clock.Now()
	flooded := told.State.Flooded
	switch {
	case f.Value == nil:
		t.forget(what)
	case known != nil && !flooded.After(known.State().Flooded):
		// This process has known that flood, and has grown since, or follows.
		if t.opts.Shares && !known.leads && flooded.Equal(known.State().Flooded) && known.Follow(told.State, now) == nil {
			known.heard = now
			t.apply(what, ratelimit.Change{})
		}
		return
	case t.isEcho(what, flooded), !t.adopt(what, told, now):
		return
	}
	delete(t.dirty, what) // it is what the store has
	t.apply(what, ratelimit.Change{})
}

// isEcho reports whether a store tells of a limit that was forgotten lately.
func (t *Limits) isEcho(what subject, flooded time.Time) bool {
	was, ok := t.forgotten[what]
	return ok && !flooded.After(was.flooded)
}

// adopt takes over a stored limit; false if it can't be one.
func (t *Limits) adopt(what subject, told value, now time.Time) bool {
	known := t.find(what)
	r := t.lessonOf(what, told.State.Held)
	if r == nil {
		return false
	}
	restore := r.Restore
	if t.opts.Shares && known != nil {
		restore = r.Follow
	}
	if restore(told.State, now) != nil { // a bad state changes nothing
		if known == nil {
			t.forget(what)
		}
		return false
	}
	if most := now.Add(longestFlood); told.Over.After(most) {
		told.Over = most // of another clock
	}
	r.rest.restore(told, now)
	r.leads, r.heard, r.basis, r.flooded, r.over = false, now, "", told.State.Flooded, told.Over
	if !r.Learned() {
		t.forget(what)
	}
	return true
}
