package faults

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	contrib "github.com/gotd/contrib/middleware/ratelimit"
	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

func TestCancelledWaitersLeaveADebt(t *testing.T) {
	// The first call takes the burst, a hundred wait and are cancelled together; how long
	// does the next one wait?
	next := func(t *testing.T, wait func(context.Context) error) time.Duration {
		require.NoError(t, wait(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		waiting := crowd(100, func(int) { assert.ErrorIs(t, wait(ctx), context.Canceled) })
		synctest.Wait()
		cancel()
		waiting.Wait()
		return took(t, func() error { return wait(t.Context()) })
	}
	synctest.Test(t, func(t *testing.T) {
		peer := next(t, rate.NewLimiter(10, 1).Wait)
		l, g := gate(t, ratelimit.Limit{Rate: 10, Burst: 1})
		ours := next(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("the next call waits: x/time %s, weir %s", peer, ours)
		assert.Greater(t, peer, time.Second)
		assert.Equal(t, 100*time.Millisecond, ours)
	})
}

func TestTenThousandCancelledWaitersLeaveADebt(t *testing.T) {
	storm := func(t *testing.T, wait func(context.Context) error) {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := crowd(10_000, func(int) { assert.ErrorIs(t, wait(ctx), context.Canceled) })
		synctest.Wait()
		cancel()
		waiting.Wait()
	}
	synctest.Test(t, func(t *testing.T) {
		hourly := rate.NewLimiter(rate.Every(time.Hour), 1)
		require.True(t, hourly.Allow())
		storm(t, hourly.Wait)
		l, g := gate(t, ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
		drain(t, l, g, 1)
		storm(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("tokens left: x/time %.0f, weir %.0f", hourly.Tokens(), g.Stats().Tokens)
		assert.Less(t, hourly.Tokens(), -1000.0)
		assert.InDelta(t, 0, g.Stats().Tokens, 0.001)
	})
}

func TestRaisedLimitDoesNotReachAWaiter(t *testing.T) {
	after := func(t *testing.T, wait func() error, raise func()) (took time.Duration) {
		start := time.Now()
		waiting := crowd(1, func(int) {
			assert.NoError(t, wait())
			took = time.Since(start)
		})
		synctest.Wait()
		raise()
		waiting.Wait()
		return took
	}
	synctest.Test(t, func(t *testing.T) {
		x := rate.NewLimiter(rate.Every(time.Hour), 1)
		require.True(t, x.Allow())
		peer := after(t, func() error { return x.Wait(t.Context()) }, func() { x.SetLimit(1000) })
		l, g := gate(t, ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
		drain(t, l, g, 1)
		ours := after(t, func() error { return l.Acquire(t.Context(), 1, g) }, func() {
			assert.NoError(t, l.Update(map[ratelimit.Gate]ratelimit.Change{g: ratelimit.Rate(1000)}))
		})
		t.Logf("1/h is raised to 1000/s under a waiter, which waits: x/time %s, weir %s", peer, ours)
		assert.Equal(t, time.Hour, peer)
		assert.LessOrEqual(t, ours, time.Millisecond)
	})
}

func TestLoweredLimitLetsAllWaitersOut(t *testing.T) {
	// A hundred wait at 1000/s when it becomes 1/s. How many are through 100 ms later?
	through := func(t *testing.T, wait func(context.Context) error, lower func()) int64 {
		var n atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		waiting := crowd(100, func(int) {
			if wait(ctx) == nil {
				n.Add(1)
			}
		})
		synctest.Wait()
		lower()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		passed := n.Load()
		cancel()
		waiting.Wait()
		return passed
	}
	synctest.Test(t, func(t *testing.T) {
		x := rate.NewLimiter(1000, 1)
		require.True(t, x.Allow())
		peer := through(t, x.Wait, func() { x.SetLimit(1) })
		l, g := gate(t, ratelimit.Limit{Rate: 1000, Burst: 1})
		drain(t, l, g, 1)
		ours := through(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) }, func() {
			assert.NoError(t, l.Update(map[ratelimit.Gate]ratelimit.Change{g: ratelimit.Rate(1)}))
		})
		t.Logf("1000/s is lowered to 1/s; 100 ms later are through: x/time %d, weir %d", peer, ours)
		assert.EqualValues(t, 100, peer)
		assert.LessOrEqual(t, ours, int64(1))
	})
}

func TestClockReadBeforeTheLock(t *testing.T) {
	// Once a second, a call is held up for a second between reading the clock and getting
	// the lock, as threads are under contention. x/time's methods with a time do what its
	// others do with the time that they read; weir gets the same readings from its clock.
	const seconds = 60
	count := func(tryAt func(time.Time) bool) (n int) {
		start := time.Now()
		for s := range seconds {
			now := start.Add(time.Duration(s) * time.Second)
			for range 9 {
				if tryAt(now) {
					n++
				}
			}
			if tryAt(now.Add(-time.Second)) { // the one that was held up
				n++
			}
			for range 10 {
				if tryAt(now) {
					n++
				}
			}
		}
		return n
	}
	x := rate.NewLimiter(10, 10)
	peer := count(func(at time.Time) bool { return x.AllowN(at, 1) })
	clk := &readings{Clock: clock.System, at: time.Now().Add(-time.Hour)}
	l := ratelimit.New(ratelimit.Options{Clock: clk})
	g, err := l.NewGate("gate", ratelimit.Limit{Rate: 10, Burst: 10})
	require.NoError(t, err)
	ours := count(func(at time.Time) bool {
		clk.at = at
		return l.Try(1, g) == nil
	})
	const allowed = 10 + 10*(seconds-1)
	t.Logf("of %d allowed in a minute, admitted: x/time %d, weir %d", allowed, peer, ours)
	assert.Greater(t, peer, allowed*3/2)
	assert.Equal(t, allowed, ours)
}

// readings is a clock that says what it is told.
type readings struct {
	clock.Clock
	at time.Time
}

func (r *readings) Now() time.Time { return r.at }

func TestContentionRaisesTheRate(t *testing.T) {
	// The same with real threads. How much the peer admits is up to the scheduler, from
	// what is allowed to several times as much, so that only weir's figure is asserted.
	const goroutines, perSecond, burst = 4000, 1e6, 100
	admitted := func(wait func() error) float64 {
		var n atomic.Int64
		start := time.Now()
		stop := start.Add(300 * time.Millisecond)
		crowd(goroutines, func(int) {
			for time.Now().Before(stop) {
				if wait() == nil {
					n.Add(1)
				}
			}
		}).Wait()
		return float64(n.Load()) / (burst + perSecond*time.Since(start).Seconds())
	}
	x := rate.NewLimiter(perSecond, burst)
	peer := admitted(func() error { return x.Wait(t.Context()) })
	l, g := gate(t, ratelimit.Limit{Rate: perSecond, Burst: burst})
	ours := admitted(func() error { return l.Acquire(t.Context(), 1, g) })
	t.Logf("of what a million a second allows, 4000 goroutines got: x/time %.2f, weir %.2f", peer, ours)
	assert.LessOrEqual(t, ours, 1.05)
}

func TestTimersOfTheirOwnLoseTheOrder(t *testing.T) {
	// Behind a first call that waits half a second for its large cost, a thousand queue one
	// after the other, and go through at 10,000 a second. How many return behind one that
	// came later?
	const waiters, perSecond, burst = 1000, 10_000, 5000
	behind := func(wait func(tokens int) error, came func(returned int) int) (n int) {
		order := make(chan int, waiters+1)
		call := func(tokens, i int) {
			crowd(1, func(int) {
				assert.NoError(t, wait(tokens))
				order <- i
			})
			for came(len(order)) <= i {
				runtime.Gosched()
			}
		}
		call(burst, 0)
		for i := range waiters {
			call(1, i+1)
		}
		latest := 0
		for range waiters + 1 {
			i := <-order
			if i < latest {
				n++
			}
			latest = max(latest, i)
		}
		return n
	}

	x := rate.NewLimiter(perSecond, burst)
	start := time.Now()
	require.True(t, x.AllowN(start, burst))
	peer := behind(func(n int) error { return x.WaitN(t.Context(), n) }, func(int) int {
		// What has been taken is what has come in since the start, less what is left.
		taken := time.Since(start).Seconds()*perSecond - x.Tokens()
		return int(taken+0.5) - burst + 1
	})
	l, g := gate(t, ratelimit.Limit{Rate: perSecond, Burst: burst})
	drain(t, l, g, burst)
	ours := behind(func(n int) error { return l.Acquire(t.Context(), n, g) }, func(returned int) int {
		return g.Stats().Waiters + returned
	})
	t.Logf("of 1000 waiters, out of order: x/time %d, weir %d", peer, ours)
	assert.Greater(t, peer, waiters/20)
	// The order of the grants is exact, but a goroutine may be stopped, by the system or by the
	// race detector, between its grant and its word.
	assert.Less(t, ours, peer/4)
}

func TestEachWaiterHasATimer(t *testing.T) {
	// contrib has x/time inside and, unlike it, lets its clock be chosen.
	const waiters = 1000
	synctest.Test(t, func(t *testing.T) {
		count := func(c *counting, wait func(context.Context) error) int64 {
			ctx, cancel := context.WithCancel(t.Context())
			waiting := crowd(waiters, func(int) { assert.ErrorIs(t, wait(ctx), context.Canceled) })
			synctest.Wait()
			cancel()
			waiting.Wait()
			return c.timers.Load()
		}
		theirs, own := &counting{Clock: clock.System}, &counting{Clock: clock.System}
		call := client(contrib.New(rate.Every(time.Hour), 1).WithClock(theirs), answer)
		require.NoError(t, call(t.Context(), 1))
		peer := count(theirs, func(ctx context.Context) error { return call(ctx, 1) })

		l := ratelimit.New(ratelimit.Options{Clock: own})
		g, err := l.NewGate("gate", ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
		require.NoError(t, err)
		drain(t, l, g, 1)
		ours := count(own, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("timers for 1000 waiters: contrib %d, weir %d", peer, ours)
		assert.EqualValues(t, waiters, peer)
		assert.EqualValues(t, 1, ours)
	})
}

// counting counts the timers that are made.
type counting struct {
	clock.Clock
	timers atomic.Int64
}

func (c *counting) Timer(d time.Duration) clock.Timer {
	c.timers.Add(1)
	return c.Clock.Timer(d)
}
