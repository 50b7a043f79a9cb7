package quota

import (
	"context"
	"sync"

	"github.com/weirtg/weir/store"
)

// Do runs work if the key's window has room, and charges the key after work has
// succeeded. Work that fails or panics costs nothing.
//
//	result, err := limits.Do(ctx, quota.Key("award", userID), perMinute, func(ctx context.Context) error {
//		return award(ctx, userID)
//	})
//
// Result.Limited is true if work did not run, and false if it ran. An error of work is
// returned as it is. The other errors are those of [Limiter.Charge]. Such an error with
// Result.Limited false means that work succeeded but was not counted. The charge is made
// even if ctx is done by then.
//
// Within one limiter, Do runs one call of a key at a time, in no particular order, so
// that two calls do not both find the last room. A call that waits for its turn returns
// when ctx is done. Do does not wait for other processes: if one of them takes the last
// room meanwhile, work still runs, once more than the limit allows. Work must not call
// Do with the same key, which would block until its context is done.
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
	result.Limited = false // work ran, even if another process took the last room
	return result, err
}

// turns is a mutex for each key, whose Lock can be cancelled.
type turns struct {
	mu   sync.Mutex
	keys map[string]*turn // those with users
}

type turn struct {
	free  chan struct{} // holds one value while the turn is free
	users int           // who have the turn or wait for it
}

// enter waits for the key's turn. Call leave to end it.
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
