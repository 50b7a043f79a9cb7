package keyed

import (
	"context"
	"sync"

	"github.com/weirtg/weir/store"
)

// Do does some work if the key's window has room for it, and charges the key once the
// work has succeeded: work that fails or panics costs nothing.
//
//	result, err := limits.Do(ctx, keyed.Key("award", userID), perMinute, func(ctx context.Context) error {
//		return award(ctx, userID)
//	})
//
// Result.Limited says that the work was not done; it is false whenever the work was.
// An error of the work is returned as it is. One of the store, see [Limiter.Charge],
// may come before the work or, with Result.Limited false, after it; it was done then
// but not counted. So the charge is made even if ctx ends while the work is done.
//
// Calls of Do with the same key go one after the other within this limiter, in no
// order, so that two that come at the same time do not both find the last room. A call
// that waits for its turn leaves when its context is done. Other processes are not
// waited for: there, what has charged in between counts, and the work is done all the
// same. The work must not call Do with its own key, which would wait for itself.
func (l *Limiter) Do(ctx context.Context, key string, w Window, work func(context.Context) error) (Result, error) {
	if work == nil {
		return Result{Limited: true}, &store.ArgumentError{Field: "work", Value: "nil", Want: "a function"}
	}
	leave, err := l.turns.enter(ctx, key)
	if err != nil {
		return Result{Limited: true}, err
	}
	defer leave()
	seen, err := l.Peek(ctx, key, w)
	if err != nil || seen.Limited {
		return seen, err
	}
	if err := work(ctx); err != nil {
		return seen, err
	}
	result, err := l.Charge(context.WithoutCancel(ctx), key, w)
	result.Limited = false // the work was done, even if somebody else has charged meanwhile
	return result, err
}

// turns lets one caller at a time have a key.
type turns struct {
	mu   sync.Mutex
	keys map[string]*turn // those that somebody has or waits for
}

type turn struct {
	free  chan struct{} // holds one value while nobody has the turn
	users int
}

// enter waits for the key's turn. leave has to be called then.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	if t.keys == nil {
		t.keys = make(map[string]*turn)
	}
	k := t.keys[key]
	if k == nil {
		k = &turn{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		t.keys[key] = k
	}
	k.users++
	t.mu.Unlock()

	select {
	case <-k.free:
		return func() {
			k.free <- struct{}{}
			t.drop(key, k)
		}, nil
	case <-ctx.Done():
		t.drop(key, k)
		return nil, ctx.Err()
	}
}

func (t *turns) drop(key string, k *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(t.keys, key)
	}
}
