package persist

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/weirtg/weir/store"
)

// Source is one kind of what is kept: learned limits, changes of limits, and so on. It is a
// [Marked] or a [Chronicle] too. Its methods are called by several goroutines. Fact and Changes
// are called under a lock of the keeper, so no method of the keeper may be called under a lock
// that they need. Those of [Journal] may be.
type Source interface {
	// Prefix begins the keys of its facts, and of no other's.
	Prefix() string
	// Restore takes in a fact that was kept, or that another process saved. A nil value
	// says that it was forgotten. What cannot be read is ignored.
	Restore(f store.Fact)
}

// Marked is a source that marks what changes in the [Journal].
type Marked interface {
	Source
	// Fact returns the fact under a key that was marked, as it stands now. The value is a
	// JSON object. ok is false if there is none any more, and it is to be forgotten.
	Fact(key string) (f store.Fact, ok bool)
}

// Chronicle is a source that keeps a journal of its own.
type Chronicle interface {
	Source
	// Changes returns what has changed since it was last asked, as it stands now. A nil
	// value is to be forgotten.
	Changes() []store.Fact
}

// receive takes in a fact from the store.
func (k *Keeper) receive(f store.Fact) {
	s, longest := k.source(f.Key)
	switch {
	case s == nil: // of another version
		return
	case f.Value == nil:
	case f.Until.After(k.clock.Now().Add(longest + clocks)):
		if k.doubt != nil {
			k.doubt(f)
		}
		return
	default:
		if f.Began = began(f.Value); k.journal.echoes(f.Key, f.Began) {
			return
		}
	}
	s.Restore(f)
}

// source returns the source of a key, and how long its facts last at most.
func (k *Keeper) source(key string) (s Source, longest time.Duration) {
	for _, kept := range k.sources {
		if strings.HasPrefix(key, kept.Prefix()) {
			return kept.Source, kept.longest
		}
	}
	return nil, 0
}

// A value is stored with the time when what it is about began as one more member.

func withBegan(f store.Fact) store.Fact {
	if f.Began.IsZero() || len(f.Value) < 2 || f.Value[0] != '{' {
		return f
	}
	member, err := json.Marshal(struct {
		Began time.Time `json:"began"`
	}{f.Began.UTC()})
	if err != nil {
		return f // of a year that no clock shows
	}
	if rest := bytes.TrimSpace(f.Value[1:]); rest[0] == '}' {
		f.Value = member
	} else {
		f.Value = append(append(member[:len(member)-1], ','), rest...)
	}
	return f
}

// began is the zero time if the value does not say.
func began(value []byte) time.Time {
	var stored struct {
		Began time.Time `json:"began"`
	}
	if json.Unmarshal(value, &stored) != nil {
		return time.Time{}
	}
	return stored.Began
}
