package persist

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

// mostAtOnce is how many facts are saved at once. What has gathered in a long outage could
// take longer than a store may, however often it is tried.
const mostAtOnce = 500

// Remember has what was marked written, and waits until that is done if it is urgent. It
// returns when ctx is done, and at once while the store is lost: what is not written now is
// written when the store is back. A store that does not answer holds it up for two seconds at
// most.
func (k *Keeper) Remember(ctx context.Context) {
	if k == nil {
		return
	}
	written := k.request()
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	case <-k.life.Done():
	}
}

// request wakes the writer if there is something to write. It returns what is closed after
// the write, nil if there is nothing to wait for.
func (k *Keeper) request() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.collectLocked()
	some, urgent := k.journal.pending()
	urgent = urgent || len(k.pending) > 0
	if !urgent && (!some || k.clock.Now().Before(k.next)) {
		return nil
	}
	if k.lost() { // the writer tries it again
		return nil
	}
	k.poke()
	if !urgent {
		return nil
	}
	if k.written == nil {
		k.written = make(chan struct{})
	}
	return k.written
}

// poke has the writer look at what there is to do.
func (k *Keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default: // it is about to
	}
}

// write saves what is to be saved, and tries a store that is lost again, until Close.
func (k *Keeper) write() {
	for {
		var retry <-chan time.Time
		var timer clock.Timer
		if wait, lost := k.health.Due(); lost {
			timer = k.clock.Timer(wait)
			retry = timer.C()
		}
		select {
		case <-k.wake:
		case <-retry:
		case <-k.life.Done():
		}
		if timer != nil {
			clock.StopTimer(timer)
		}
		if k.life.Err() != nil {
			return
		}
		k.writeOnce()
	}
}

// writeOnce writes what there is, if the store is there or due to be tried.
func (k *Keeper) writeOnce() {
	k.mu.Lock()
	written := k.written
	k.written = nil
	k.gatherLocked()
	some := len(k.pending) > 0
	k.mu.Unlock()
	if written != nil {
		defer close(written)
	}
	if !some && !k.lost() {
		return
	}
	attempt, err := k.health.Begin()
	if err != nil {
		return
	}
	err = k.save(k.life)
	if k.life.Err() != nil {
		attempt.Abandon()
		return
	}
	attempt.End(err)
}

// gatherLocked adds what has changed to what is pending, and drops what has expired since: what
// the store has instead expires sooner.
func (k *Keeper) gatherLocked() {
	now := k.clock.Now()
	k.collectLocked()
	for key := range k.journal.take() {
		s, _ := k.source(key)
		marked, ok := s.(Marked)
		if !ok {
			continue
		}
		f, ok := marked.Fact(key)
		if !ok {
			f = store.Fact{}
		}
		f.Key = key
		k.addLocked(f)
	}
	k.next = now.Add(growthEvery)
	maps.DeleteFunc(k.pending, func(_ string, f store.Fact) bool { return f.Value != nil && !f.Until.After(now) })
}

// collectLocked takes in what the sources with journals of their own have noted.
func (k *Keeper) collectLocked() {
	for _, s := range k.sources {
		if c, ok := s.Source.(Chronicle); ok {
			k.addLocked(c.Changes()...)
		}
	}
}

func (k *Keeper) addLocked(facts ...store.Fact) {
	for _, f := range facts {
		k.pending[f.Key] = withBegan(f)
	}
}

// save saves what is pending, and asks the store whether it is there if nothing is. What could
// not be saved stays pending.
func (k *Keeper) save(ctx context.Context) error {
	k.mu.Lock()
	batch := k.pending
	k.pending = map[string]store.Fact{}
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	maps.DeleteFunc(batch, func(_ string, f store.Fact) bool {
		return f.Validate() != nil // no store takes it, nor any other that is saved with it
	})
	if len(batch) == 0 {
		_, err := k.facts.Load(ctx)
		return err
	}
	for facts := range slices.Chunk(slices.Collect(maps.Values(batch)), mostAtOnce) {
		if err := k.facts.Save(ctx, facts...); err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			maps.Copy(batch, k.pending) // what is newer
			k.pending = batch
			return err
		}
		for _, f := range facts {
			delete(batch, f.Key)
		}
	}
	return nil
}
