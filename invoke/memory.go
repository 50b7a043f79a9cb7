package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/store"
)

// The keys under which facts are kept begin with what they are about. Those of floods are made
// by package flood.
const (
	floodFact = "flood/"
	limitFact = "limit/"
)

const (
	// limitsKept is how long a change of the limits reaches processes that start later.
	limitsKept = 24 * time.Hour
	// rateEvery is how often the growth of a rate is written down. What is lost grows again.
	rateEvery = 10 * time.Second
	// storePatience bounds one look at the store.
	storePatience = 2 * time.Second
	// checkPatience bounds the first one, for which a connection has to be set up.
	checkPatience = 5 * time.Second
	// watchPause is how long to wait before a store that was lost is asked again, at
	// first, and at most.
	watchPause, longestWatchPause = 100 * time.Millisecond, 5 * time.Second
)

// minKept is the shortest flood that is worth remembering over a restart.
const minKept = 2 * time.Second

// join asks the store whether it can be used, and brings back what was remembered, before the
// first call.
func (l *Limiter) join(opts Options) error {
	if l.keeper == nil {
		return nil
	}
	if c, ok := opts.Store.(store.Checker); ok {
		if err := l.check(c, opts.OnFailure); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return l.recall(opts.OnFailure)
}

// check returns an error if there is no going on without the store. One that is only away is
// told of by the first who needs it.
func (l *Limiter) check(c store.Checker, policy store.Policy) error {
	ctx, cancel := context.WithTimeout(l.life, checkPatience)
	defer cancel()
	err := c.Check(ctx)
	if errors.Is(err, store.ErrMisconfigured) || policy == store.FailClosed {
		return err
	}
	return nil
}

// recall brings back what was remembered, before the first call. With the policy Closed a
// store that cannot be read is an error: a flood may stand that is not known. Under every
// policy one is that no waiting mends.
func (l *Limiter) recall(policy store.Policy) error {
	ctx, cancel := context.WithTimeout(l.life, storePatience)
	defer cancel()
	facts, err := l.keeper.memory.Load(ctx)
	if err != nil && (policy == store.FailClosed || errors.Is(err, store.ErrMisconfigured)) {
		return fmt.Errorf("memory: %w", err)
	}
	l.keeper.note(err)
	for _, fact := range facts {
		l.told(fact)
	}
	return nil
}

// watch takes in what other processes met, until the limiter is closed.
func (l *Limiter) watch() {
	pause := watchPause
	for {
		began := l.clock.Now()
		err := l.keeper.memory.Watch(l.life, l.told)
		if l.life.Err() != nil {
			return
		}
		l.keeper.note(err)
		if l.clock.Now().Sub(began) > longestWatchPause {
			pause = watchPause
		}
		if !l.rest(pause) {
			return
		}
		pause = min(2*pause, longestWatchPause)
	}
}

// catchUp asks a store that was lost whether it is back, and saves what it has missed, until
// the limiter is closed. A store that fails need not end what watches it.
func (l *Limiter) catchUp() {
	k := l.keeper
	for pause := watchPause; ; pause = min(2*pause, longestWatchPause) {
		if !k.isLost() {
			pause = watchPause
			select {
			case <-k.loss:
			case <-l.life.Done():
				return
			}
		}
		if !l.rest(pause) {
			return
		}
		k.turn <- struct{}{} // who has it is bounded
		k.dropOver(l.clock.Now())
		k.write(l.life)
		<-k.turn
	}
}

// rest reports false when the limiter is closed.
func (l *Limiter) rest(d time.Duration) bool {
	timer := l.clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-l.life.Done():
		return false
	}
}

// remember saves what has changed since the last time. It blocks while the store writes.
func (l *Limiter) remember() {
	k := l.keeper
	if k == nil {
		return
	}
	k.mu.Lock()
	l.gatherLocked()
	news := len(k.pending) > 0 && !k.lost
	k.mu.Unlock()
	if news {
		k.save(l.life)
	}
}

// finish saves what is left, when nobody watches any more.
func (k *keeper) finish(l *Limiter) {
	k.ended.Wait()
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	k.mu.Lock()
	k.next = time.Time{}
	l.gatherLocked()
	news := len(k.pending) > 0
	k.mu.Unlock()
	if news {
		k.write(context.Background())
	}
}

// gatherLocked adds what has changed to what is pending.
func (l *Limiter) gatherLocked() {
	k := l.keeper
	floods := l.tracker.Changes()
	for _, r := range floods {
		if r.Until.IsZero() {
			k.pending[r.Key()] = store.Fact{Key: r.Key()}
		} else if r.Wait >= minKept || l.shares {
			k.pending[r.Key()] = fact(r.Key(), r, r.Until)
		}
	}
	for _, f := range l.breaker.Changes() {
		k.pending[f.Key] = f
	}
	news, urgent := l.learned.News()
	if now := l.clock.Now(); news && (urgent || len(floods) > 0 || !now.Before(k.next)) {
		k.next = now.Add(rateEvery)
		for _, f := range l.learned.Changes() {
			k.pending[f.Key] = f
		}
	}
}
