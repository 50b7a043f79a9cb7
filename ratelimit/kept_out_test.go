package ratelimit_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
)

// Each of these tests keeps out a fault that was there once.

func TestBusyGateIsNotForgottenWhileOthersSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		groups := newGates(t, l, ratelimit.Window{Limit: 20, Period: time.Minute})
		var times []time.Time
		for range 60 { // through the queue alone
			require.NoError(t, l.Acquire(t.Context(), 1, groups.Key(1)))
			times = append(times, time.Now())
		}
		require.NoError(t, l.Acquire(t.Context(), 1, groups.Key(2)))
		for range 20 {
			require.NoError(t, l.Acquire(t.Context(), 1, groups.Key(1)))
			times = append(times, time.Now())
		}
		for i := 20; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i].Sub(times[i-20]), time.Minute, "call %d", i)
		}
	})
}

func TestPermitThatIsHeldKeepsItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 30)
		var permits []*ratelimit.Permit
		for range 30 {
			p, err := l.TryAcquire(1, g)
			require.NoError(t, err)
			permits = append(permits, p)
		}
		time.Sleep(time.Hour)
		require.Error(t, l.Try(1, g), "the 30 may be sent at any time, and the burst is 30")
		for _, p := range permits {
			p.Return()
		}
		require.NoError(t, l.Try(30, g))
		require.Error(t, l.Try(1, g), "31 at once where the burst is 30")
	})
}

func TestWindowTakesBackTheCallThatItWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		sliding := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Minute})
		first, err := l.TryAcquire(1, sliding)
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		require.NoError(t, l.Try(1, sliding))
		first.Return()
		require.NoError(t, l.Try(1, sliding))
		time.Sleep(10 * time.Second)
		require.Error(t, l.Try(1, sliding), "two have passed in the last ten seconds")
	})
}

func TestChangeOfNothingChangesNothing(t *testing.T) {
	for _, rule := range []ratelimit.Rule{
		ratelimit.Limit{Rate: 1, Burst: 20},
		ratelimit.Window{Limit: 20, Period: time.Minute},
		ratelimit.Window{Limit: 20, Period: time.Minute, Kind: ratelimit.Aligned},
		ratelimit.Window{Limit: 20, Period: time.Minute, Kind: ratelimit.FirstHit},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := ratelimit.New(ratelimit.Options{})
			g, err := l.NewGate("g", rule)
			require.NoError(t, err)
			for _, pause := range []time.Duration{0, 10 * time.Second, 10 * time.Minute} {
				require.NoError(t, l.Try(3, g))
				time.Sleep(pause)
				before := g.Stats()
				update(t, l, g, ratelimit.Change{})
				require.Equal(t, before, g.Stats(), "%v", rule)
			}
		})
	}
}

func TestWeightIsReckonedUnderTheLimitOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 10)
		drain(t, l, g)
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, g.Times(10)) }()
		synctest.Wait()
		update(t, l, g, ratelimit.Burst(3))
		require.NoError(t, <-done, "it counts for all that the gate holds now")

		paused := newWindow(t, l, ratelimit.Window{Limit: 0, Period: time.Minute})
		var wg sync.WaitGroup
		start := time.Now()
		for range 4 {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, paused.Times(10))) })
		}
		synctest.Wait()
		update(t, l, paused, ratelimit.To(ratelimit.Window{Limit: 20, Period: time.Minute}))
		wg.Wait()
		require.Equal(t, time.Minute, time.Since(start))

		p, err := l.TryAcquire(1, newGate(t, l, "h", 0.001, 3).Times(100))
		require.NoError(t, err)
		h := l.Stats()[2]
		require.Zero(t, math.Floor(h.Tokens))
		p.Return()
		require.Equal(t, 3.0, l.Stats()[2].Tokens)
	})
}

func TestWeightAtANarrowGateIsNoWaitAtAWideOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat, wide := newGate(t, l, "chat", 100, 100), newGate(t, l, "wide", 1, 1)
		drain(t, l, wide)
		go func() { _ = l.Acquire(t.Context(), 1, chat.Times(100), wide) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.NoError(t, l.Acquire(ctx, 1, chat, wide))
	})
}

func TestGatesThatMakeNoSenseAreRefused(t *testing.T) {
	l, other := ratelimit.New(ratelimit.Options{}), ratelimit.New(ratelimit.Options{})
	g, stranger := newGate(t, l, "g", 1, 2), newGate(t, other, "stranger", 1, 2)
	for name, gates := range map[string][]ratelimit.Gate{
		"gates[1] is g once more":              {g, g},
		"gates[1] is none of this limiter's":   {g, {}},
		"gates[0] is none of this limiter's: ": {stranger},
	} {
		require.ErrorContains(t, l.Acquire(t.Context(), 1, gates...), name)
		require.ErrorContains(t, l.Try(1, gates...), name)
		_, err := l.TryAcquire(1, gates...)
		require.ErrorContains(t, err, name)
		l.Refund(1, gates...)
	}
	require.NoError(t, l.Try(2, g))
}

func TestRefundsOutOfRangeHarmNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g, slow := newGate(t, l, "g", 1, 5), newGate(t, l, "slow", 1e-9, 3)
		for range 5 {
			l.Refund(math.MaxInt32, g, slow)
		}
		l.Refund(-3, g)
		require.Equal(t, 5.0, g.Stats().Tokens)
		require.NoError(t, l.Try(5, g))
		require.NoError(t, l.Try(3, slow))
		require.Error(t, l.Try(1, slow))
	})
}

func TestWaiterIsNotRefusedForAFullQueueOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		a, b := newGate(t, l, "a", 1, 1), newGate(t, l, "b", 10, 10)
		wide := newGate(t, l, "wide", 1, 1)
		wide.SetMaxWaiters(1)
		drain(t, l, a)
		drain(t, l, wide)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, a, wide)) })
		synctest.Wait()
		wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, b, wide)) })
		wg.Wait()
	})
}

func TestImpossibleIsToldBehindAPausedGate(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	paused, small := newGate(t, l, "paused", 0, 10), newGate(t, l, "small", 1, 2)
	require.ErrorIs(t, l.Acquire(t.Context(), 3, paused, small), ratelimit.ErrImpossible)
}

func TestForgottenGateGetsNoTokensByAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		set, single := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3}), newGate(t, l, "single", 1, 3)
		for _, g := range []ratelimit.Gate{set.Set(), single} {
			update(t, l, g, ratelimit.Burst(30))
		}
		for range 40 {
			time.Sleep(700 * time.Millisecond)
			require.Equal(t, l.Try(2, single) == nil, l.Try(2, set.Key(7)) == nil)
		}
	})
}
