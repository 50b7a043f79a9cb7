package floods

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/flood"
)

// journal keeps what changed since the last look. A nil journal keeps nothing. The
// mutex of the book guards it, but for pending.
type journal struct {
	// entries has the zero flood.Record for a flood that is to be looked up, and for one that
	// ended early the flood.Record as it was.
	entries map[key]flood.Record
	pending atomic.Int64 // len(entries)
	// gone is what ended lately. A store may still tell that it stands.
	gone map[key]gone
}

type gone struct{ began, ended time.Time }

// echo is how long after a change a store may still tell what was before it.
const echo = time.Minute

// knows reports whether a flood that began then has ended since.
func (j *journal) knows(k key, began time.Time) bool {
	if j == nil {
		return false
	}
	g, ok := j.gone[k]
	return ok && !began.After(g.began)
}

// set notes that the flood is new, wider or longer.
func (j *journal) set(k key) {
	if j != nil {
		j.entries[k] = flood.Record{}
		j.pending.Store(int64(len(j.entries)))
	}
}

// ended notes that the flood is about to be forgotten. If its deadline is over, nobody
// has to be told, and the sweep that comes next drops it.
func (j *journal) ended(r *record, now time.Time) {
	if j != nil {
		j.entries[r.key], j.gone[r.key] = r.public(), gone{r.until.Add(-r.wait), now}
		j.pending.Store(int64(len(j.entries)))
	}
}

// told notes that a store knows the flood as it stands.
func (j *journal) told(k key) {
	if j != nil {
		delete(j.entries, k)
		j.pending.Store(int64(len(j.entries)))
	}
}

// sweep drops what has run out, which bounds the journal as it does the book.
func (j *journal) sweep(records map[key]*record, now time.Time) {
	if j == nil {
		return
	}
	maps.DeleteFunc(j.gone, func(_ key, g gone) bool { return now.Sub(g.ended) > echo })
	for k, gone := range j.entries {
		if gone.Scope == 0 && records[k] == nil || gone.Scope != 0 && !gone.Until.After(now) {
			delete(j.entries, k)
		}
	}
	j.pending.Store(int64(len(j.entries)))
}

// Changes returns the floods that began, grew wider or longer, or ended before their
// deadline since the last call, each once and as it stands now, sorted as in
// [Tracker.Snapshot]. One that ended early has neither Until nor Wait: a store is to forget
// its [Record.Key], and other processes learn of it by [Tracker.Restore]. What merely ran
// out is not told, and neither is what Restore brought.
//
// It is empty without [Options.Journal]. It does not block, and costs an atomic load when
// nothing changed. Several readers share the changes.
func (t *Tracker) Changes() []flood.Record {
	if t.journal == nil || t.journal.pending.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	var out []flood.Record
	for k, gone := range t.journal.entries {
		if r := t.records[k]; r != nil && r.left(now) > 0 {
			pub := r.public()
			pub.Waiting = 0
			out = append(out, pub)
		} else if gone.Scope != 0 {
			gone.Until, gone.Wait, gone.Waiting = time.Time{}, 0, 0
			out = append(out, gone)
		}
	}
	clear(t.journal.entries)
	t.journal.pending.Store(0)
	sortRecords(out)
	return out
}

func sortRecords(records []flood.Record) {
	slices.SortFunc(records, func(x, y flood.Record) int {
		return cmp.Or(
			cmp.Compare(x.DC, y.DC), cmp.Compare(x.Method, y.Method), cmp.Compare(x.Chat, y.Chat),
			cmp.Compare(x.Scope, y.Scope), cmp.Compare(x.Kind, y.Kind), x.Until.Compare(y.Until),
			strings.Compare(x.Why, y.Why),
		)
	})
}
