package breaker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/store"
)

const (
	// FactPrefix begins the key of each fact about a trip.
	FactPrefix = "refusal/"
	// Kept is how long a trip is remembered unless it is cleared.
	Kept = 365 * 24 * time.Hour
)

// fact is the key under which a store keeps the trip. A method so long that no store takes
// the key is remembered by this process only.
func (k key) fact() string { return fmt.Sprintf("%s%v/%d/%s", FactPrefix, k.kind, k.dc, k.method) }

// Changes returns what has tripped or was cleared since the last call, each once and as it
// stands now, sorted. A fact without a value is to be forgotten. What Restore brought is
// not among them. It costs an atomic load when nothing changed.
func (b *Breaker) Changes() []store.Fact {
	if b.pending.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var facts []store.Fact
	for _, k := range slices.SortedFunc(maps.Keys(b.changed), key.compare) {
		f := store.Fact{Key: k.fact()}
		if r := b.counts[k]; r != nil && !r.Tripped.IsZero() {
			kept := *r
			kept.Since, kept.Tripped = r.Since.UTC(), r.Tripped.UTC()
			if text, err := json.Marshal(kept); err == nil {
				f.Value, f.Until = text, b.opts.Clock.Now().Add(Kept)
			}
		}
		facts = append(facts, f)
	}
	clear(b.changed)
	b.tally()
	return facts
}

// Restore takes in a trip that a store kept or another process saved. A fact without a
// value clears it. One that was cleared here within the last minute stays cleared, unless
// it tripped anew: a store may report it late.
//
// A fact that does not read, or that no breaker can have made, is ignored. A trip in the
// future, as after the clock was set back, counts from now.
func (b *Breaker) Restore(f store.Fact) {
	if b.opts.Off {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.tally()
	if f.Value == nil {
		ended := func(k key) bool { return k.fact() == f.Key }
		maps.DeleteFunc(b.counts, func(k key, _ *flood.Refusal) bool { return ended(k) })
		maps.DeleteFunc(b.changed, func(k key, _ bool) bool { return ended(k) })
		return
	}
	var told flood.Refusal
	if json.Unmarshal(f.Value, &told) != nil || told.Tripped.IsZero() {
		return
	}
	k := key{kind: told.Kind, method: told.Method, dc: told.DC}
	if !k.possible() || k.fact() != f.Key || kindOf(k.method, tgerr.New(told.Code, told.Message)) != k.kind {
		return
	}
	now := b.opts.Clock.Now()
	b.sweep(now)
	if at, ok := b.cleared[k]; ok && !told.Tripped.After(at) {
		return
	}
	known := b.counts[k]
	if known != nil && !known.Tripped.IsZero() || known == nil && len(b.counts) >= maxKinds {
		return
	}
	if told.Tripped.After(now) {
		told.Tripped = now
	}
	b.counts[k] = &told
}
