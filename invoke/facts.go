package invoke

import (
	"encoding/json"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/breaker"
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
	if f.Value != nil && f.Until.After(l.clock.Now().Add(longestKept(f.Key))) {
		if _, ok := l.logged.first("fact", time.Hour); ok {
			l.log.Warn("What the store remembers is not believed, and is ignored: it is to last longer than anything that is kept",
				zap.String("fact", f.Key), zap.Time("until", f.Until))
		}
		return
	}
	switch {
	case f.Key == accountFact:
		l.toldOwner(f)
	case strings.HasPrefix(f.Key, floodFact):
		var r flood.Record
		if f.Value == nil {
			for _, known := range l.tracker.Snapshot() {
				if known.Key() == f.Key {
					known.Until, known.Wait = time.Time{}, 0
					l.tracker.Restore(known)
				}
			}
		} else if json.Unmarshal(f.Value, &r) == nil {
			l.tracker.Restore(r)
		}
	case strings.HasPrefix(f.Key, breaker.FactPrefix):
		l.breaker.Restore(f)
	case strings.HasPrefix(f.Key, adapt.FactPrefix):
		l.learned.Restore(f)
	case strings.HasPrefix(f.Key, limitFact) && l.shares:
		var changed limit
		if json.Unmarshal(f.Value, &changed) == nil {
			l.adopt(strings.TrimPrefix(f.Key, limitFact), changed)
		}
	}
}

// longestKept is how far ahead the end of a fact is believed: as long as its like is kept,
// and a day more for clocks that do not agree.
func longestKept(key string) time.Duration {
	const clocks = 24 * time.Hour
	switch {
	case strings.HasPrefix(key, adapt.FactPrefix):
		return adapt.Kept + clocks
	case strings.HasPrefix(key, limitFact):
		return limitsKept + clocks
	case strings.HasPrefix(key, floodFact):
		return 2*flood.MaxWait + clocks
	case strings.HasPrefix(key, breaker.FactPrefix):
		return breaker.Kept + clocks
	default:
		return accountKept + clocks
	}
}
