package invoke

import (
	"errors"
	"fmt"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/ratelimit"
)

// UpdateLimits changes limits under the calls that wait: heads of queues reckon
// again at once. What a change does not name stays, and so do the tokens, cut to
// the new burst, unless the change says otherwise. A rate that floods have lowered stays
// lowered, and a limit below it holds at once. Either all changes are made or, with an
// error that names those that are bad, none.
//
// With [LimiterOptions.Shared] the change reaches all processes of the account, those that
// start within a day included, and UpdateLimits blocks for as long as it takes to tell the
// store, two seconds at most. Should the store be unavailable, they learn of it when it is
// back.
func (l *Limiter) UpdateLimits(changes map[classify.Category]ratelimit.Change) error {
	if err := checkCategories(changes); err != nil {
		return err
	}
	next, err := l.updateCategories(changes)
	if err != nil {
		return fmt.Errorf("rate limits: %w", err)
	}
	l.spread(func(all *limits) {
		for category, limit := range next {
			all.set(category.String(), limit)
		}
	})
	return nil
}

// updateCategories returns the limits that were changed.
func (l *Limiter) updateCategories(changes map[classify.Category]ratelimit.Change) (map[classify.Category]ratelimit.Limit, error) {
	t := &l.learning
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[classify.Category]ratelimit.Limit, len(changes))
	var errs []error
	for category, change := range changes {
		rule, err := change.Apply(t.configured[category])
		errs = append(errs, named(category.String(), err))
		next[category], _ = rule.(ratelimit.Limit)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	byGate := make(map[ratelimit.Gate]ratelimit.Change, len(changes))
	for category, limit := range next {
		t.configured[category] = limit
		if r := t.categories[category]; r == nil {
			t.begin(category)
		} else if limit.Rate > 0 {
			_ = r.SetCeiling(limit.Rate) // it has just been checked
		}
		keeps := t.effective(category)
		byGate[l.gates[category]] = changes[category].Rate(keeps.Rate).Burst(keeps.Burst)
	}
	return next, l.limiter.Update(byGate)
}

// UpdateGates changes the rules of keyed gates by name: [PrivateGate], [GroupGate],
// [PaidGate], [ResolvePhoneGate] or the program's own, under the calls that wait at
// them. Either all changes are made or none. It takes a time that grows with the
// number of chats that were active lately. With [LimiterOptions.Shared] it reaches all
// processes, as UpdateLimits does; otherwise it does not block.
func (l *Limiter) UpdateGates(changes map[string]ratelimit.Change) error {
	next, err := l.updateGates(changes)
	if err != nil {
		return fmt.Errorf("gates: %w", err)
	}
	l.spread(func(all *limits) {
		for name, rule := range next {
			all.set(name, rule)
		}
	})
	return nil
}

func (l *Limiter) updateGates(changes map[string]ratelimit.Change) (map[string]ratelimit.Rule, error) {
	byGate := make(map[ratelimit.Gate]ratelimit.Change, len(changes))
	for name, change := range changes {
		gates, ok := l.byName[name]
		if !ok {
			return nil, fmt.Errorf("there is none named %q", name)
		}
		byGate[gates.Set()] = change
	}
	if err := l.limiter.Update(byGate); err != nil {
		return nil, err
	}
	next := make(map[string]ratelimit.Rule, len(changes))
	for name := range changes {
		next[name] = l.byName[name].Rule()
	}
	return next, nil
}

// limits are those that were changed while the account's processes ran, as they are told
// from one to the others.
type limits struct {
	Buckets map[string]ratelimit.Limit  `json:"buckets,omitempty"`
	Windows map[string]ratelimit.Window `json:"windows,omitempty"`
}

func (all *limits) set(name string, rule ratelimit.Rule) {
	switch rule := rule.(type) {
	case ratelimit.Limit:
		if all.Buckets == nil {
			all.Buckets = map[string]ratelimit.Limit{}
		}
		all.Buckets[name] = rule
	case ratelimit.Window:
		if all.Windows == nil {
			all.Windows = map[string]ratelimit.Window{}
		}
		all.Windows[name] = rule
	}
}

// spread tells the other processes of a change.
func (l *Limiter) spread(change func(*limits)) {
	k := l.keeper
	if k == nil || !k.shared {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.limits)
	k.pending[limitsFact] = fact(limitsFact, k.limits, l.clock.Now().Add(limitsKept))
	k.saveLocked(l.life)
}

// adopt takes over what another process has changed. What this one has no gate for, or
// of another kind, is left alone: the program there may be another version.
func (l *Limiter) adopt(changed limits) {
	l.keeper.mu.Lock()
	l.keeper.limits = changed
	l.keeper.mu.Unlock()
	for name, rule := range changed.Buckets {
		l.adoptRule(name, rule)
	}
	for name, rule := range changed.Windows {
		l.adoptRule(name, rule)
	}
}

func (l *Limiter) adoptRule(name string, rule ratelimit.Rule) {
	if category, err := classify.ParseCategory(name); err == nil {
		_, _ = l.updateCategories(map[classify.Category]ratelimit.Change{category: ratelimit.To(rule)})
		return
	}
	_, _ = l.updateGates(map[string]ratelimit.Change{name: ratelimit.To(rule)})
}
