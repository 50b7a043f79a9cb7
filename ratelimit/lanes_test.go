package ratelimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
)

// order collects who was admitted, in order.
type order struct {
	mu    sync.Mutex
	names []string
}

func (o *order) add(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
}

func TestInteractiveCallPassesTheBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		message, global := newGate(t, l, "message", 10, 1), newGate(t, l, "global", 5, 1)
		drain(t, l, message)
		drain(t, l, global)
		var broadcast sync.WaitGroup
		for range 100 {
			broadcast.Go(func() { assert.NoError(t, l.AcquireBackground(t.Context(), 1, message, global)) })
		}
		time.Sleep(90 * time.Millisecond) // one of them holds the message gate and waits at the global one
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, message, global))
		require.LessOrEqual(t, time.Since(start), 200*time.Millisecond, "the next token is its own")
		broadcast.Wait()
	})
}

func TestBackgroundGoesEveryTenthTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 1)
		drain(t, l, g)
		var o order
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { assert.NoError(t, l.AcquireBackground(t.Context(), 1, g)); o.add("background") })
		}
		synctest.Wait()
		for range 40 {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, g)); o.add("normal") })
		}
		wg.Wait()
		for i, name := range o.names {
			want := "normal"
			if i%10 == 9 && i < 30 {
				want = "background"
			}
			require.Equal(t, want, name, "admission %d of %v", i, o.names)
		}
	})
}

func TestBackgroundCallsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 1)
		drain(t, l, g)
		var o order
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			wg.Go(func() { assert.NoError(t, l.AcquireBackground(t.Context(), 1, g)); o.add(name) })
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []string{"a", "b", "c", "d"}, o.names)
	})
}

func TestDisplacedBackgroundCallLeavesTheWideGateFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		a, b := newGate(t, l, "a", 1, 1), newGate(t, l, "b", 100, 100)
		global := newGate(t, l, "global", 1, 1)
		drain(t, l, global)
		go func() { _ = l.AcquireBackground(t.Context(), 1, a, global) }()
		synctest.Wait() // it is the head of a and of global
		require.Equal(t, 1, global.Stats().Waiters)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = l.Acquire(ctx, 1, a, global) }()
		synctest.Wait()
		require.Equal(t, 1, global.Stats().Waiters, "the normal call stands there now, the other has let go")
		cancel()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, b, global))
		require.Equal(t, time.Second, time.Since(start), "a normal call passes it at the wide gate")
		l.Close()
	})
}

func TestTryDoesNotPassABackgroundCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 2)
		drain(t, l, g)
		go func() { _ = l.AcquireBackground(t.Context(), 2, g) }()
		time.Sleep(time.Second)
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected)
		time.Sleep(2 * time.Second)
	})
}

func TestFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 1)
		g.SetMaxWaiters(2)
		drain(t, l, g)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, g)) })
		}
		synctest.Wait()
		err := l.Acquire(t.Context(), 1, g)
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, ratelimit.ErrQueueFull)
		require.Equal(t, 3*time.Second, refused.Wait)
		require.EqualError(t, err, "gate g (1/s burst 1): queue full: room in 3s")
		wg.Go(func() { assert.NoError(t, l.AcquireBackground(t.Context(), 1, g)) }) // a lane of its own
		wg.Wait()
		require.NoError(t, l.Acquire(t.Context(), 1, g))
	})
}
