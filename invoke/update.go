package invoke

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// UpdateLimits changes limits under the calls that wait: heads of queues reckon
// again at once. What a change does not name stays, and so do the tokens, cut to
// the new burst, unless the change says otherwise. A rate that floods have lowered stays
// lowered, and a limit below it holds at once. Either all changes are made or, with an
// error that names those that are bad, none.
//
// With a store that is shared the change reaches all processes of the account, those that
// start within a day included, and UpdateLimits blocks for as long as it takes to tell the
// store, two seconds at most. Should the store be unavailable, they learn of it when it is
// back.
func (l *Limiter) UpdateLimits(changes map[classify.Category]ratelimit.Change) error {
	limits, err := l.learned.Update(changes)
	if err != nil {
		return err
	}
	next := make(map[string]ratelimit.Rule, len(limits))
	for category, limit := range limits {
		next[category.String()] = limit
	}
	l.spread(next)
	return nil
}

// UpdateGates changes the rules of keyed gates by name: [PrivateGate], [GroupGate],
// [PaidGate], [ResolvePhoneGate] or the program's own, under the calls that wait at
// them. What chats have learned stays, cut to the new limits. Either all changes are made or
// none. It takes a time that grows with the number of chats that were active lately. With
// a store that is shared it reaches all processes, as UpdateLimits does; otherwise it does
// not block.
func (l *Limiter) UpdateGates(changes map[string]ratelimit.Change) error {
	next, err := l.updateGates(changes)
	if err != nil {
		return fmt.Errorf("gates: %w", err)
	}
	l.spread(next)
	return nil
}

func (l *Limiter) updateGates(changes map[string]ratelimit.Change) (map[string]ratelimit.Rule, error) {
	byGate := make(map[ratelimit.Gate]ratelimit.Change, len(changes))
	for name, change := range changes {
		gates, ok := l.byName[name]
		if !ok {
			return nil, fmt.Errorf("there is none named %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(l.byName)), ", "))
		}
		byGate[gates.Set()] = change
	}
	if err := l.learned.UpdateChats(func() error { return l.limiter.Update(byGate) }); err != nil {
		return nil, err
	}
	next := make(map[string]ratelimit.Rule, len(changes))
	for name := range changes {
		next[name] = l.byName[name].Rule()
	}
	return next, nil
}

// limitsKept is how long a change of the limits reaches processes that start later.
const limitsKept = 24 * time.Hour

// changedLimits are the limits that were changed while the account's processes ran, by gate.
// Each is a fact of its own, so that no change takes back another that was made at the same
// time.
type changedLimits struct {
	limiter *Limiter
	mu      sync.Mutex
	rules   map[string]ratelimit.Rule
}

// keptLimit is one of them, as it is stored.
type keptLimit struct {
	Bucket *ratelimit.Limit  `json:"bucket,omitempty"`
	Window *ratelimit.Window `json:"window,omitempty"`
}

// spread tells the other processes of changes.
func (l *Limiter) spread(changed map[string]ratelimit.Rule) {
	if !l.shares {
		return
	}
	l.changed.mu.Lock()
	maps.Copy(l.changed.rules, changed)
	l.changed.mu.Unlock()
	for name := range changed {
		l.keeper.Journal().Mark(l.changed.Prefix()+name, true)
	}
	l.keeper.Remember(l.life)
}

// Prefix implements persist.Source.
func (*changedLimits) Prefix() string { return "limit/" }

// Fact implements persist.Marked.
func (c *changedLimits) Fact(key string) (f store.Fact, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept keptLimit
	switch rule := c.rules[strings.TrimPrefix(key, c.Prefix())].(type) {
	case ratelimit.Limit:
		kept.Bucket = &rule
	case ratelimit.Window:
		kept.Window = &rule
	}
	return fact(key, kept, c.limiter.clock.Now().Add(limitsKept)), true
}

// Restore implements persist.Source: it takes over what another process has changed. What
// this one has no gate for, or one of another kind, is left alone: the program there may be
// another version.
func (c *changedLimits) Restore(f store.Fact) {
	var kept keptLimit
	if f.Value == nil || json.Unmarshal(f.Value, &kept) != nil {
		return
	}
	var rule ratelimit.Rule
	switch {
	case kept.Bucket != nil:
		rule = *kept.Bucket
	case kept.Window != nil:
		rule = *kept.Window
	default:
		return
	}
	name := strings.TrimPrefix(f.Key, c.Prefix())
	if category, err := classify.ParseCategory(name); err == nil {
		_, _ = c.limiter.learned.Update(map[classify.Category]ratelimit.Change{category: ratelimit.To(rule)})
		return
	}
	_, _ = c.limiter.updateGates(map[string]ratelimit.Change{name: ratelimit.To(rule)})
}
