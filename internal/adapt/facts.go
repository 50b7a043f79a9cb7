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

const (
	factPrefix = "rate/"
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
		return factPrefix + "chat/" + strconv.FormatInt(int64(what.chat), 10)
	}
	return factPrefix + what.category.String()
}

func subjectOf(key string) (what subject, err error) {
	name := strings.TrimPrefix(key, factPrefix)
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

// Prefix begins the keys of the facts that are learned limits.
func (t *Limits) Prefix() string { return factPrefix }

// Fact returns the learned limit under a key as it stands now; ok is false if there is none
// any more. It began with the last flood that taught it.
func (t *Limits) Fact(key string) (f store.Fact, ok bool) {
	what, err := subjectOf(key)
	if err != nil {
		return f, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.find(what)
	if r == nil {
		return f, false
	}
	text, err := json.Marshal(value{r.State(), r.over.Round(0), r.rest.floods, r.rest.sum})
	if err != nil {
		return f, false // of a year that no clock shows
	}
	return store.Fact{Key: key, Value: text, Until: t.opts.Clock.Now().Add(Kept), Began: r.flooded}, true
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
	case !t.adopt(what, told, now):
		return
	}
	t.apply(what, ratelimit.Change{})
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
