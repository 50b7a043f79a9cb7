package invoke

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/breaker"
	"github.com/weirtg/weir/internal/persist"
	"github.com/weirtg/weir/store"
)

const (
	// floodKept is the longest that a flood lasts, one that was met again and again.
	floodKept = 2 * flood.MaxWait
	// minKept is the shortest flood that is worth remembering over a restart.
	minKept = 2 * time.Second
)

// newKeeper returns what keeps the limiter's knowledge in the store, nil without one. It is
// the caller's to add the sources.
func (l *Limiter) newKeeper(opts Options) *persist.Keeper {
	return persist.New(persist.Options{
		Facts: opts.Store, Clock: l.clock,
		Health: store.NewHealth(store.HealthOptions{Clock: l.clock, Reporter: l.reporter}),
		Doubt: func(f store.Fact) {
			if _, ok := l.logged.first("fact", time.Hour); ok {
				l.log.Warn("What the store remembers is not believed, and is ignored: it is to last longer than anything that is kept",
					zap.String("fact", f.Key), zap.Time("until", f.Until))
			}
		},
	})
}

// addSources says what is kept.
func (l *Limiter) addSources() {
	l.keeper.Add(trackerFacts{l}, floodKept)
	l.keeper.Add(breakerFacts{l.breaker}, breaker.Kept)
	l.keeper.Add(l.learned, adapt.Kept)
	l.keeper.Add(accountFacts{l}, accountKept)
	if l.shares {
		l.keeper.Add(&l.changed, limitsKept)
	}
}

var (
	_ persist.Chronicle = trackerFacts{}
	_ persist.Chronicle = breakerFacts{}
	_ persist.Marked    = (*adapt.Limits)(nil)
	_ persist.Marked    = accountFacts{}
	_ persist.Marked    = (*changedLimits)(nil)
)

// storeChanged logs that the store was lost, or is back, and tells the observer.
func (l *Limiter) storeChanged(err error) {
	e := Event{Kind: StoreBack}
	if err != nil {
		e = Event{Kind: StoreLost, Err: err}
	}
	l.logStore(e)
	l.tell(e)
}

// fact makes a fact of a value that encodes. Of another there is nothing to remember.
func fact(key string, value any, until time.Time) store.Fact {
	text, err := json.Marshal(value)
	if err != nil {
		return store.Fact{Key: key}
	}
	return store.Fact{Key: key, Value: text, Until: until}
}

// trackerFacts are the floods that are worth keeping.
type trackerFacts struct{ *Limiter }

// Prefix implements persist.Source.
func (trackerFacts) Prefix() string { return "flood/" }

// Changes implements persist.Chronicle.
func (l trackerFacts) Changes() (facts []store.Fact) {
	for _, r := range l.tracker.Changes() {
		if r.Until.IsZero() {
			facts = append(facts, store.Fact{Key: r.Key()})
		} else if r.Wait >= minKept || l.shares {
			facts = append(facts, fact(r.Key(), r, r.Until))
		}
	}
	return facts
}

// Restore implements persist.Source.
func (l trackerFacts) Restore(f store.Fact) {
	if f.Value == nil {
		for _, known := range l.tracker.Snapshot() {
			if known.Key() == f.Key {
				known.Until, known.Wait = time.Time{}, 0
				l.tracker.Restore(known)
			}
		}
		return
	}
	var r flood.Record
	if json.Unmarshal(f.Value, &r) == nil {
		l.tracker.Restore(r)
	}
}

// breakerFacts are the permanent refusals after which calls are no longer sent.
type breakerFacts struct{ *breaker.Breaker }

// Prefix implements persist.Source.
func (breakerFacts) Prefix() string { return breaker.FactPrefix }
