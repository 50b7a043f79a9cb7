package adapt

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/ratelimit"
)

// Gate returns the gate of a chat that has a learned limit; ok is false for all others.
func (t *Limits) Gate(chat classify.Peer) (gate ratelimit.Gate, ok bool) {
	if t.learned.Load() == 0 {
		return gate, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.chats[chat]
	if r == nil {
		return gate, false
	}
	return r.pace.Key(uint64(chat)), true
}

// effective is the limit that a category keeps to.
func (t *Limits) effective(category classify.Category) ratelimit.Limit {
	limit := t.configured[category]
	if r := t.categories[category]; r != nil && !limit.Paused() {
		limit.Rate = min(limit.Rate, r.PerSecond()) // one call in months is too little to be a ceiling to learn below
		learned := int(math.Round(r.Burst(float64(limit.Burst))))
		limit.Burst = max(1, learned, min(limit.Burst, t.room[category]))
	}
	return limit
}

// apply sets the gate of a subject to what is kept to now, under the mutex, so that the
// last change is the latest.
func (t *Limits) apply(what subject, change ratelimit.Change) {
	r := t.find(what)
	if r != nil {
		r.told = r.PerSecond()
	}
	gate := t.opts.Gates[what.category]
	switch {
	case what.chat == 0:
		limit := t.effective(what.category)
		change = change.Rate(limit.Rate).Burst(limit.Burst)
		// Where the burst is less than a second's tokens, waiting for answers would keep the
		// gate below its rate, and nothing could be learned about that.
		gate.SetChargeAtBegin(r != nil && float64(limit.Burst) < limit.Rate)
	case r == nil:
		return // its gate is no longer in use
	default:
		gate, change = r.pace.Set(), change.Rate(r.told).Burst(max(1, r.room))
	}
	// It cannot fail: a part of a limit that was valid is valid.
	_ = t.opts.Limiter.Update(map[ratelimit.Gate]ratelimit.Change{gate: change})
}

// MakeRoom sees to it that a call which costs more than one token fits into gates that
// floods have lowered, whose burst may be a single token. A call that costs more than is
// configured will be refused, and needs no room.
func (t *Limits) MakeRoom(c Call) {
	if c.Cost == 1 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, category := range [...]classify.Category{c.Category, classify.Global} {
		if burst := t.configured[category].Burst; burst > 0 && c.Cost > burst { // at a paused one it waits
			return
		}
	}
	if c.Messages > 0 {
		if burst := t.opts.ChatLimit(c.Chat).Burst; burst > 0 && c.Cost > burst {
			return
		}
	}
	if t.room[c.Category] < c.Cost {
		t.room[c.Category] = c.Cost
		t.apply(subject{category: c.Category}, ratelimit.Change{})
	}
	if r := t.chats[c.Chat]; r != nil && c.Messages > 0 && r.room < c.Cost {
		r.room = c.Cost
		t.apply(subject{chat: c.Chat}, ratelimit.Change{})
	}
}

// Drain empties the buckets of categories, so that calls which were held back follow at
// the pace of their limit, without the burst that has gathered meanwhile.
func (t *Limits) Drain(categories ...classify.Category) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, category := range categories {
		t.apply(subject{category: category}, ratelimit.Change{}.Inherit(ratelimit.Empty))
	}
}

// Changed returns what the changes make of the limits that they are about. The error names
// every category that does not exist, and every limit that is out of range.
func Changed(limits [classify.Global + 1]ratelimit.Limit, changes map[classify.Category]ratelimit.Change) (map[classify.Category]ratelimit.Limit, error) {
	next := make(map[classify.Category]ratelimit.Limit, len(changes))
	var errs []error
	for category, change := range changes {
		if !category.Valid() {
			errs = append(errs, fmt.Errorf("rate limits: %v is no category: want one of %v", category, classify.Categories()))
			continue
		}
		rule, err := change.Apply(limits[category])
		if bad, ok := errors.AsType[*ratelimit.LimitError](err); ok {
			bad.Gate = category.String()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rate limits: %w", err))
			continue
		}
		next[category] = rule.(ratelimit.Limit) // a bucket stays a bucket
	}
	return next, errors.Join(errs...)
}

// Update changes the configured limits of categories, and returns what they are now. A
// limit that floods have lowered stays lowered, and a configured one below it holds at
// once. Either all changes are made or, with an error that names those that are bad, none.
func (t *Limits) Update(changes map[classify.Category]ratelimit.Change) (map[classify.Category]ratelimit.Limit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limits, err := Changed(t.configured, changes)
	if err != nil {
		return nil, err
	}
	byGate := make(map[ratelimit.Gate]ratelimit.Change, len(changes))
	for category, limit := range limits {
		t.configured[category] = limit
		if fresh := t.unlearned[category]; fresh == nil {
			t.begin(category)
		} else if limit.Rate > 0 {
			_ = fresh.SetCeiling(limit.Rate) // it has just been checked
		}
		keeps := t.effective(category)
		byGate[t.opts.Gates[category]] = changes[category].Rate(keeps.Rate).Burst(keeps.Burst)
	}
	return limits, t.opts.Limiter.Update(byGate)
}

// UpdateChats runs update, which changes the configured limits of chats, and cuts what was
// learned of chats to them, unless update fails.
func (t *Limits) UpdateChats(update func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := update(); err != nil {
		return err
	}
	for chat, r := range t.chats {
		if ceiling := t.opts.ChatLimit(chat).Rate; ceiling != r.Ceiling() && r.SetCeiling(ceiling) == nil { // else it is paused
			t.apply(subject{chat: chat}, ratelimit.Change{})
		}
	}
	return nil
}
