package floods

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirtg/weir/flood"
)

// journal keeps what changed since the last call of Changes. A nil journal keeps nothing. The
// mutex of the tracker guards it, except pending.
type journal struct {
	entries map[key]*entry
	pending atomic.Int64      // len(entries)
	early   deadlines[*entry] // those of floods that ended early, by their deadline

	// gone is what ended lately. A store may still say that it stands. leaving has the same
	// in the order in which it ended.
	gone    map[key]gone
	leaving []leaving
}

// entry is a flood that changed.
type entry struct {
	place
	key key
	// was is the flood as it was, if it ended before its deadline; else it is the zero Record.
	was flood.Record
}

type (
	gone    struct{ began, ended time.Time }
	leaving struct {
		key   key
		ended time.Time
	}
)

// echo is how long after a change a store may still say what was before it.
const echo = time.Minute

func newJournal() *journal {
	return &journal{entries: map[key]*entry{}, gone: map[key]gone{}}
}

// hasEnded reports whether a flood that began then has ended since.
func (j *journal) hasEnded(k key, began time.Time) bool {
	if j == nil {
		return false
	}
	g, ok := j.gone[k]
	return ok && !began.After(g.began)
}

// changed notes that the flood is new, wider or longer.
func (j *journal) changed(k key) {
	if j != nil {
		e := j.entry(k)
		j.early.remove(e)
		e.was = flood.Record{}
	}
}

// ended notes that the flood is about to be forgotten. If its deadline is over, there is
// nothing to say, and the next sweep drops the entry.
func (j *journal) ended(r *record, now time.Time) {
	if j != nil {
		e := j.entry(r.key)
		e.was = r.public()
		j.early.set(e, r.until)
		j.gone[r.key] = gone{r.until.Add(-r.wait), now}
		j.leaving = append(j.leaving, leaving{r.key, now})
	}
}

func (j *journal) entry(k key) *entry {
	e := j.entries[k]
	if e == nil {
		e = &entry{key: k}
		j.entries[k] = e
		j.pending.Store(int64(len(j.entries)))
	}
	return e
}

// known notes that a store knows the flood as it stands.
func (j *journal) known(k key) {
	if j != nil {
		j.drop(j.entries[k])
	}
}

// removed notes that the flood is no longer remembered.
func (j *journal) removed(k key) {
	if j != nil {
		if e := j.entries[k]; e != nil && e.was.Scope == 0 {
			j.drop(e)
		}
	}
}

func (j *journal) drop(e *entry) {
	if e != nil {
		j.early.remove(e)
		delete(j.entries, e.key)
		j.pending.Store(int64(len(j.entries)))
	}
}

// sweep drops what has run out, which bounds the journal as it does the tracker.
func (j *journal) sweep(now time.Time) {
	if j == nil {
		return
	}
	for e, ok := j.early.first(now); ok; e, ok = j.early.first(now) {
		j.drop(e)
	}
	for len(j.leaving) > 0 && now.Sub(j.leaving[0].ended) > echo {
		if l := j.leaving[0]; j.gone[l.key].ended.Equal(l.ended) {
			delete(j.gone, l.key)
		}
		j.leaving = j.leaving[1:]
	}
}

// Changes returns the floods that began, grew wider or longer, or ended before their
// deadline since the last call, each once and as it stands now, sorted as in
// [Tracker.Snapshot]. One that ended early has neither Until nor Wait: a store has to forget
// its [flood.Record.Key], and other processes take it in by [Tracker.Restore]. Changes leaves
// out floods that merely ran out and those that came by Restore.
//
// It is empty without [Options.Journal]. It does not block, and costs an atomic load when
// nothing changed. Each change is returned once, however many goroutines call Changes.
func (t *Tracker) Changes() []flood.Record {
	if t.journal == nil || t.journal.pending.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	var out []flood.Record
	for k, e := range t.journal.entries {
		if r := t.records[k]; r != nil && r.left(now) > 0 {
			pub := r.public()
			pub.Waiting = 0
			out = append(out, pub)
		} else if e.was.Scope != 0 {
			e.was.Until, e.was.Wait, e.was.Waiting = time.Time{}, 0, 0
			out = append(out, e.was)
		}
		t.journal.drop(e)
	}
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
