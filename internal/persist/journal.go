package persist

import (
	"maps"
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// echoTime is how long after something has ended a store may still say that it stands.
const echoTime = time.Minute

// Journal is what has changed since it was last written: the keys of facts. It is safe for
// concurrent use, and its methods may be called under the lock of the source. They do not
// block. A nil Journal keeps nothing.
type Journal struct {
	clock clock.Clock

	mu     sync.Mutex
	keys   map[string]bool
	urgent bool // one of them is
	// ended is what has ended lately. The store may say once more that it stands, because
	// that was saved, here or by another process, before the end was.
	ended   map[string]ending
	sweepAt time.Time // when to look for endings that are too old to matter
}

// ending is when something had begun and when it ended.
type ending struct{ began, at time.Time }

func newJournal(c clock.Clock) *Journal {
	return &Journal{clock: c, keys: map[string]bool{}, ended: map[string]ending{}}
}

// Mark notes that the fact under the key is new or has changed. What is urgent is written by
// the next [Keeper.Remember], the rest by one every ten seconds.
func (j *Journal) Mark(key string, urgent bool) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys[key] = true
	j.urgent = j.urgent || urgent
}

// Ended notes that what the fact under the key is about, and what began then, is over. It is
// urgent. For a minute the store is not believed when it says that it stands; what began
// later is another.
func (j *Journal) Ended(key string, began time.Time) {
	if j == nil {
		return
	}
	now := j.clock.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys[key], j.urgent = true, true
	if !now.Before(j.sweepAt) {
		maps.DeleteFunc(j.ended, func(_ string, e ending) bool { return now.Sub(e.at) > echoTime })
		j.sweepAt = now.Add(echoTime)
	}
	j.ended[key] = ending{began, now}
}

// echoes reports whether a store that tells of what began then tells of what is over.
func (j *Journal) echoes(key string, began time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.ended[key]
	return ok && j.clock.Now().Sub(e.at) <= echoTime && !began.After(e.began)
}

// pending reports whether anything has changed, and whether that is urgent.
func (j *Journal) pending() (some, urgent bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.keys) > 0, j.urgent
}

// take returns the keys of what has changed, and forgets them.
func (j *Journal) take() map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	keys := j.keys
	j.keys, j.urgent = map[string]bool{}, false
	return keys
}
