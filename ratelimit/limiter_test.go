package ratelimit_test

import (
	"context"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/ratelimit"
)

func newGate(t testing.TB, l *ratelimit.Limiter, name string, rate float64, burst int) ratelimit.Gate {
	t.Helper()
	g, err := l.NewGate(name, ratelimit.Limit{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return g
}

func update(t testing.TB, l *ratelimit.Limiter, g ratelimit.Gate, c ratelimit.Change) {
	t.Helper()
	require.NoError(t, l.Update(map[ratelimit.Gate]ratelimit.Change{g: c}))
}

// drain takes everything that the gate holds.
func drain(t testing.TB, l *ratelimit.Limiter, g ratelimit.Gate) {
	t.Helper()
	for l.Try(1, g) == nil {
	}
}

func TestBurstPassesThenTheRateHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 3)
		start := time.Now()
		for i := range 53 {
			require.NoError(t, l.Acquire(t.Context(), 1, g))
			want := time.Duration(max(0, i-2)) * 100 * time.Millisecond
			require.Equal(t, want, time.Since(start), "call %d", i)
		}
	})
}

func TestWaitersAreAdmittedInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		l := ratelimit.New(ratelimit.Options{})
		g, global := newGate(t, l, "g", 10_000, 1), newGate(t, l, "global", 20_000, 1)
		drain(t, l, g)
		var (
			mu    sync.Mutex
			order []int
			wg    sync.WaitGroup
		)
		for i := range n {
			wg.Go(func() {
				if l.Acquire(t.Context(), 1, g, global) == nil {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				}
			})
			synctest.Wait() // it stands in the queue before the next one comes
		}
		wg.Wait()
		require.Len(t, order, n)
		for i, got := range order {
			require.Equal(t, i, got)
		}
	})
}

func TestCancelledWaitersLeaveNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 1)
		drain(t, l, g)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() { assert.ErrorIs(t, l.Acquire(ctx, 1, g), context.Canceled) })
		}
		synctest.Wait()
		require.Equal(t, 10_000, g.Stats().Waiters)
		cancel()
		wg.Wait()
		require.Zero(t, g.Stats().Waiters)
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.Equal(t, 100*time.Millisecond, time.Since(start))
	})
}

func TestCancelledHeadHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g, global := newGate(t, l, "g", 10, 1), newGate(t, l, "global", 1, 1)
		drain(t, l, global)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { assert.ErrorIs(t, l.Acquire(ctx, 1, g, global), context.Canceled) }()
		synctest.Wait()
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			assert.NoError(t, l.Acquire(t.Context(), 1, g, global))
			done <- time.Since(start)
		}()
		time.Sleep(500 * time.Millisecond)
		cancel()
		require.Equal(t, time.Second, <-done)
	})
}

func TestDeadlineThatCannotBeMetIsRefusedAtOnceAndCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 1)
		drain(t, l, g)
		start := time.Now()
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			err := l.Acquire(ctx, 1, g)
			cancel()
			var refused *ratelimit.RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, ratelimit.ErrDeferred)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the context is not done")
			require.Equal(t, time.Second, refused.Wait)
			require.Equal(t, "g", refused.Gate)
		}
		require.Zero(t, time.Since(start))
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestDeadlineCountsThoseAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g, global := newGate(t, l, "g", 100, 100), newGate(t, l, "global", 1, 1)
		drain(t, l, global)
		for range 5 {
			go func() { _ = l.Acquire(t.Context(), 1, g, global) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, l.Acquire(ctx, 1, g, global), &refused)
		require.Equal(t, 6*time.Second, refused.Wait)
		ctx, cancel = context.WithTimeout(t.Context(), 6*time.Second+1)
		defer cancel()
		require.NoError(t, l.Acquire(ctx, 1, g, global))
	})
}

func TestRaisedRateWakesTheSleeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1.0/3600, 1)
		drain(t, l, g)
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			assert.NoError(t, l.Acquire(t.Context(), 1, g))
			done <- time.Since(start)
		}()
		time.Sleep(time.Minute)
		update(t, l, g, ratelimit.Rate(1000))
		require.LessOrEqual(t, <-done, time.Minute+time.Millisecond)
	})
}

func TestLoweredRateHoldsTheWaitersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1000, 1)
		drain(t, l, g)
		var admitted []time.Time
		var mu sync.Mutex
		for range 100 {
			go func() {
				if l.Acquire(t.Context(), 1, g) == nil {
					mu.Lock()
					admitted = append(admitted, time.Now())
					mu.Unlock()
				}
			}()
		}
		synctest.Wait()
		update(t, l, g, ratelimit.Rate(1))
		time.Sleep(10*time.Second + time.Millisecond)
		mu.Lock()
		require.Len(t, admitted, 10)
		mu.Unlock()
		l.Close()
	})
}

func TestPausedGateAdmitsNothingUntilResumed(t *testing.T) {
	for name, pause := range map[string]ratelimit.Change{"rate 0": ratelimit.Rate(0), "burst 0": ratelimit.Burst(0)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				g := newGate(t, l, "g", 10, 5)
				update(t, l, g, pause)
				var refused *ratelimit.RefusedError
				err := l.Try(1, g)
				require.ErrorAs(t, err, &refused)
				require.ErrorIs(t, err, ratelimit.ErrRejected)
				require.Zero(t, refused.Wait)
				require.Zero(t, g.Stats().Tokens)
				require.Zero(t, l.Congestion(), "nobody wants anything of it")

				done := make(chan error)
				go func() { done <- l.Acquire(t.Context(), 1, g) }()
				time.Sleep(time.Hour)
				require.Equal(t, 1, g.Stats().Waiters)
				require.Equal(t, 1.0, l.Congestion())
				update(t, l, g, ratelimit.Rate(10).Burst(5))
				require.NoError(t, <-done)
			})
		})
	}
}

func TestPauseKeepsTokensAndRefillsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 5)
		require.NoError(t, l.Try(3, g))
		update(t, l, g, ratelimit.Rate(0))
		time.Sleep(time.Hour)
		update(t, l, g, ratelimit.Rate(20))
		require.InDelta(t, 2, g.Stats().Tokens, 1e-6)
	})
}

func TestPausedCategoryDoesNotHoldTheGlobalGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		a, b := newGate(t, l, "a", 10, 5), newGate(t, l, "b", 10, 5)
		global := newGate(t, l, "global", 1, 1)
		drain(t, l, global)
		first := make(chan error, 1)
		go func() { first <- l.Acquire(t.Context(), 1, a, global) }()
		synctest.Wait() // a's call is the head of both queues
		update(t, l, a, ratelimit.Rate(0))
		require.NoError(t, l.Acquire(t.Context(), 1, b, global))
		select {
		case <-first:
			t.Fatal("a call passed a paused gate")
		default:
		}
		update(t, l, a, ratelimit.Rate(10))
		require.NoError(t, <-first)
	})
}

func TestNoChangeGrantsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 10)
		require.NoError(t, l.Try(7, g))
		for _, step := range []struct {
			change ratelimit.Change
			want   float64
		}{
			{ratelimit.Burst(1000), 3},
			{ratelimit.Rate(0.001), 3},
			{ratelimit.Burst(2), 2},
			{ratelimit.Rate(0), 0},
			{ratelimit.Rate(1e6).Burst(1_000_000), 2},
			{ratelimit.Burst(0), 0},
			{ratelimit.Burst(10), 0},
		} {
			update(t, l, g, step.change)
			require.InDelta(t, step.want, g.Stats().Tokens, 1e-3, "%+v", step)
		}
	})
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	a, b := newGate(t, l, "a", 1, 1), newGate(t, l, "b", 1, 1)
	err := l.Update(map[ratelimit.Gate]ratelimit.Change{a: ratelimit.Rate(-2), b: ratelimit.Burst(-1)})
	require.ErrorContains(t, err, "a.rate is -2")
	require.ErrorContains(t, err, "b.burst is -1")
	err = l.Update(map[ratelimit.Gate]ratelimit.Change{a: ratelimit.Rate(2), b: ratelimit.Burst(-1)})
	var bad *ratelimit.LimitError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "b", bad.Gate)
	require.Equal(t, "burst", bad.Field)
	require.Equal(t, 1.0, a.Stats().Limit.Rate)
}

func TestBadLimitsAreNamed(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	for _, tt := range []struct {
		limit ratelimit.Limit
		want  string
	}{
		{ratelimit.Limit{Rate: -1, Burst: 1}, "g.rate is -1: want a number from 0 (paused) to 1000000000, in tokens a second"},
		{ratelimit.Limit{Rate: math.NaN(), Burst: 1}, "g.rate is NaN: want a number from 0 (paused) to 1000000000, in tokens a second"},
		{ratelimit.Limit{Rate: math.Inf(1), Burst: 1}, "g.rate is +Inf: want a number from 0 (paused) to 1000000000, in tokens a second"},
		{ratelimit.Limit{Rate: 2e9, Burst: 1}, "g.rate is 2e+09: want a number from 0 (paused) to 1000000000, in tokens a second"},
		{ratelimit.Limit{Rate: 1, Burst: -1}, "g.burst is -1: want a whole number from 0 (paused) to 2147483647"},
		{ratelimit.Limit{Rate: 1, Burst: math.MaxInt}, "g.burst is 9.223372036854776e+18: want a whole number from 0 (paused) to 2147483647"},
		{ratelimit.Limit{Rate: 1e-12, Burst: 1}, "g.rate is 1e-12: want one that fills a burst of 1 within 100 years"},
	} {
		if tt.limit.Burst == math.MaxInt && strconv.IntSize == 32 {
			continue // no int is too large there
		}
		_, err := l.NewGate("g", tt.limit)
		require.EqualError(t, err, tt.want)
	}
}

func TestTryNeverPassesAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 3)
		drain(t, l, g)
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 3, g) }()
		time.Sleep(2 * time.Second) // two tokens are there, and somebody waits for three
		_, err := l.TryAcquire(1, g)
		require.ErrorIs(t, err, ratelimit.ErrRejected)
		require.NoError(t, <-done)
	})
}

func TestCloseAnswersEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g, global := newGate(t, l, "g", 0.001, 1), newGate(t, l, "global", 0.001, 1)
		drain(t, l, g)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { assert.ErrorIs(t, l.Acquire(t.Context(), 1, g, global), ratelimit.ErrClosed) })
		}
		synctest.Wait()
		l.Close()
		wg.Wait()
		require.ErrorIs(t, l.Acquire(t.Context(), 1, global), ratelimit.ErrClosed)
		require.ErrorIs(t, l.Try(1, global), ratelimit.ErrClosed)
		l.Close()
	})
}

func TestDoneContextNeverTakes(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g := newGate(t, l, "g", 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		require.ErrorIs(t, l.Acquire(ctx, 1, g), context.Canceled)
	}
	require.NoError(t, l.Try(1, g))
}

func TestCostAboveTheBurstIsImpossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 5)
		require.ErrorIs(t, l.Acquire(t.Context(), 6, g), ratelimit.ErrImpossible)
		require.ErrorIs(t, l.Try(6, g), ratelimit.ErrImpossible)
		require.NoError(t, l.Try(5, g))

		// One that waits becomes impossible when the burst is cut below it.
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 4, g) }()
		synctest.Wait()
		update(t, l, g, ratelimit.Burst(3))
		require.ErrorIs(t, <-done, ratelimit.ErrImpossible)
	})
}

func TestCostsOutOfRangeAreRefused(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g := newGate(t, l, "g", 1, 5)
	costs := []int{0, -1, math.MinInt}
	if strconv.IntSize > 32 { // else no int is too large
		costs = append(costs, math.MaxInt)
	}
	for _, cost := range costs {
		require.ErrorContains(t, l.Acquire(t.Context(), cost, g), "want a whole number from 1")
		require.ErrorContains(t, l.Try(cost, g), "want a whole number from 1")
	}
}

func TestBusyCategoryDoesNotFillTheGlobalQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		a, b := newGate(t, l, "a", 100, 100), newGate(t, l, "b", 100, 100)
		global := newGate(t, l, "global", 1, 1)
		drain(t, l, global)
		for range 100 {
			go func() { _ = l.Acquire(t.Context(), 1, a, global) }()
		}
		synctest.Wait()
		require.Equal(t, 1, global.Stats().Waiters)
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, b, global))
		require.Equal(t, 2*time.Second, time.Since(start), "one call of a was ahead, not a hundred")
		l.Close()
	})
}

func TestRefundWakesTheSleeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 0.001, 1)
		permit, err := l.TryAcquire(1, g)
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, g) }()
		synctest.Wait()
		start := time.Now()
		permit.Return()
		require.NoError(t, <-done)
		require.Zero(t, time.Since(start))
		permit.Return()
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected, "a permit returns its tokens once")
	})
}

func TestPermitIsSpentOnce(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g, other := newGate(t, l, "g", 0.001, 2), newGate(t, l, "other", 1, 1)
	permit, err := l.TryAcquire(2, g)
	require.NoError(t, err)
	require.Equal(t, 2, permit.Cost())
	require.True(t, permit.Pays(g))
	require.False(t, permit.Pays(other))
	require.True(t, permit.Use())
	require.False(t, permit.Use())
	permit.Return()
	require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected)
}

func TestRefundNeverOverfills(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g := newGate(t, l, "g", 0.001, 2)
	l.Refund(100, g)
	require.NoError(t, l.Try(2, g))
	require.Error(t, l.Try(1, g))
}

func TestStatsTellTheOldestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 2)
		require.Zero(t, l.Congestion())
		require.NoError(t, l.Try(1, g))
		require.Equal(t, 0.5, l.Congestion())
		require.NoError(t, l.Try(1, g))
		go func() { _ = l.Acquire(t.Context(), 2, g) }()
		time.Sleep(1500 * time.Millisecond)
		stats := l.Stats()[0]
		require.Equal(t, "g", stats.Name)
		require.Equal(t, 1, stats.Waiters)
		require.Equal(t, 1500*time.Millisecond, stats.OldestWait)
		require.InDelta(t, 1.5, stats.Tokens, 1e-9)
		require.Equal(t, 1.0, stats.Congestion())
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, g.Stats().OldestWait)
	})
}

// handClock is a clock that moves by hand, counts its timers and fires them late.
type handClock struct {
	clock.Clock
	mu     sync.Mutex
	now    time.Time
	timers int
	late   time.Duration
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *handClock) Timer(d time.Duration) clock.Timer {
	c.mu.Lock()
	c.timers++
	c.mu.Unlock()
	t := &handTimer{clock: c, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

type handTimer struct {
	clock *handClock
	c     chan time.Time
}

func (t *handTimer) C() <-chan time.Time { return t.c }
func (t *handTimer) Stop() bool          { return false }
func (t *handTimer) Reset(d time.Duration) {
	t.clock.move(d + t.clock.late)
	t.c <- t.clock.Now()
}

func TestClockSetBackRefillsNothing(t *testing.T) {
	c := &handClock{now: time.Unix(1e9, 0)}
	l := ratelimit.New(ratelimit.Options{Clock: c})
	g := newGate(t, l, "g", 1, 2)
	c.move(time.Hour)
	drain(t, l, g)
	c.move(-time.Hour)
	require.Error(t, l.Try(1, g))
	c.move(time.Hour + time.Second)
	require.NoError(t, l.Try(1, g))
	require.Error(t, l.Try(1, g), "the hour was not counted twice")
}

func TestLateTimersLoseNoRate(t *testing.T) {
	c := &handClock{now: time.Unix(1e9, 0), late: 600 * time.Microsecond}
	l := ratelimit.New(ratelimit.Options{Clock: c})
	g := newGate(t, l, "g", 1000, 1)
	start := c.Now()
	for range 1001 {
		require.NoError(t, l.Acquire(t.Context(), 1, g))
	}
	require.LessOrEqual(t, c.Now().Sub(start), time.Second+c.late)
}

func TestTimersLateByMoreThanATokenLoseNoRate(t *testing.T) {
	c := &handClock{now: time.Unix(1e9, 0), late: 2500 * time.Microsecond}
	l := ratelimit.New(ratelimit.Options{Clock: c})
	g := newGate(t, l, "g", 1000, 1)
	start := c.Now()
	for range 1001 {
		require.NoError(t, l.Acquire(t.Context(), 1, g))
	}
	require.LessOrEqual(t, c.Now().Sub(start), time.Second+c.late)

	c.move(20 * time.Millisecond) // a pause: nothing is late any more
	require.NoError(t, l.Try(1, g))
	require.Error(t, l.Try(1, g))
}

func TestAtMostTenMillisecondsAreMadeUpFor(t *testing.T) {
	c := &handClock{now: time.Unix(1e9, 0), late: time.Minute}
	l := ratelimit.New(ratelimit.Options{Clock: c})
	g := newGate(t, l, "g", 1000, 1)
	drain(t, l, g)
	require.NoError(t, l.Acquire(t.Context(), 1, g))
	made := 0
	for l.Try(1, g) == nil {
		made++
	}
	require.Equal(t, 10, made)
}

func TestLongSleepIsNotMadeUpFor(t *testing.T) {
	c := &handClock{now: time.Unix(1e9, 0), late: time.Hour}
	l := ratelimit.New(ratelimit.Options{Clock: c})
	g := newGate(t, l, "g", 1, 1)
	drain(t, l, g)
	require.NoError(t, l.Acquire(t.Context(), 1, g)) // the machine slept for an hour meanwhile
	require.Error(t, l.Try(1, g))
}

// countingClock counts what it hands out, on the bubble's virtual time.
type countingClock struct {
	clock.Clock
	mu     sync.Mutex
	timers int
	sleeps int
}

func (c *countingClock) Timer(d time.Duration) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers++
	c.sleeps++
	return countingTimer{Timer: c.Clock.Timer(d), clock: c}
}

type countingTimer struct {
	clock.Timer
	clock *countingClock
}

func (t countingTimer) Reset(d time.Duration) {
	t.clock.mu.Lock()
	t.clock.sleeps++
	t.clock.mu.Unlock()
	t.Timer.Reset(d)
}

func TestTenThousandWaitersShareOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		c := &countingClock{Clock: clock.System}
		l := ratelimit.New(ratelimit.Options{Clock: c})
		g := newGate(t, l, "g", 1000, 1)
		drain(t, l, g)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, g)) })
		}
		wg.Wait()
		require.Equal(t, 1, c.timers)
		require.LessOrEqual(t, c.sleeps, n, "at most one sleep an admission")
	})
}

func TestRefusalsSayWhatStandsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "media", 2, 1)
		require.EqualError(t, l.Try(2, g), "gate media (2/s burst 1): impossible: a cost of 2 never fits, raise the burst or split the work")
		drain(t, l, g)
		require.EqualError(t, l.Try(1, g), "gate media (2/s burst 1): rejected: room in 500ms")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.EqualError(t, l.Acquire(ctx, 1, g),
			"gate media (2/s burst 1): not sent, deferred: room in 500ms, after the deadline of its context")
		update(t, l, g, ratelimit.Rate(0.47529999999999994))
		require.ErrorContains(t, l.Try(1, g), "gate media (0.475/s burst 1)")
		update(t, l, g, ratelimit.Rate(0))
		require.EqualError(t, l.Try(1, g), "gate media (0/s burst 1): rejected: paused")
	})
}
