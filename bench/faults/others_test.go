package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	failsafe "github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-redis/redis_rate/v10"
	"github.com/gotd/td/clock"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

func TestDoneContextTakesAPermit(t *testing.T) {
	// Ten calls with a context that is done already; how long does the next one wait?
	next := func(t *testing.T, wait func(context.Context) error) time.Duration {
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			_ = wait(done) // the peer grants some of them
		}
		return took(t, func() error { return wait(t.Context()) })
	}
	synctest.Test(t, func(t *testing.T) {
		peer := next(t, failsafe.NewBursty[any](1, time.Second).AcquirePermit)
		l, g := gate(t, ratelimit.Limit{Rate: 1, Burst: 1})
		ours := next(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("after 10 calls with a done context the next one waits: failsafe-go %s, weir %s", peer, ours)
		assert.Greater(t, peer, 5*time.Second)
		assert.Zero(t, ours)
	})
}

func TestTokenBucketForTwentyAMinute(t *testing.T) {
	// A full bucket; then one call after the other as fast as it goes, for a minute.
	count := func(t *testing.T, wait func(context.Context) error) (n int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Nanosecond)
		defer cancel()
		for wait(ctx) == nil {
			n++
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		peer := count(t, rate.NewLimiter(rate.Every(3*time.Second), 20).Wait)
		l, g := gate(t, ratelimit.Window{Limit: 20, Period: time.Minute})
		ours := count(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("of 20 allowed in a minute, admitted: x/time %d, weir %d", peer, ours)
		assert.Equal(t, 39, peer)
		assert.Equal(t, 20, ours)
	})
}

// redisRate is redis_rate on a Redis whose clock is set by hand.
func redisRate(t *testing.T) (*redis_rate.Limiter, *miniredis.Miniredis) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DisableIdentity: true})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return redis_rate.NewLimiter(client), server
}

func TestServerClockSetBackLocksAKey(t *testing.T) {
	limit := redis_rate.Limit{Rate: 1, Burst: 3, Period: time.Second}
	peer, server := redisRate(t)
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	server.SetTime(start)
	answer, err := peer.AllowN(t.Context(), "chat", limit, 3)
	require.NoError(t, err)
	require.Equal(t, 3, answer.Allowed)
	server.SetTime(start.Add(-10 * time.Minute))
	answer, err = peer.Allow(t.Context(), "chat", limit)
	require.NoError(t, err)

	clk := &readings{Clock: clock.System, at: start}
	l := ratelimit.New(ratelimit.Options{Clock: clk})
	g, err := l.NewGate("chat", ratelimit.Limit{Rate: 1, Burst: 3})
	require.NoError(t, err)
	drain(t, l, g, 3)
	clk.at = start.Add(-10 * time.Minute)
	var refused *ratelimit.RefusedError
	require.ErrorAs(t, l.Try(1, g), &refused)

	t.Logf("the clock is set back by 10 min; the next call is told to wait: redis_rate %s, weir %s", answer.RetryAfter, refused.Wait)
	assert.Zero(t, answer.Allowed)
	assert.Greater(t, answer.RetryAfter, 9*time.Minute)
	assert.Equal(t, time.Second, refused.Wait)
}

func TestMoreThanTheBurstIsToldToWait(t *testing.T) {
	limit := redis_rate.Limit{Rate: 1, Burst: 3, Period: time.Second}
	peer, server := redisRate(t)
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	server.SetTime(now)
	answer, err := peer.AllowN(t.Context(), "chat", limit, 4)
	require.NoError(t, err)
	server.SetTime(now.Add(2 * answer.RetryAfter))
	again, err := peer.AllowN(t.Context(), "chat", limit, 4)
	require.NoError(t, err)

	l, g := gate(t, ratelimit.Limit{Rate: 1, Burst: 3})
	ours := l.Try(4, g)
	t.Logf("4 of a burst of 3: redis_rate says wait %s, and twice that later says it again (%d allowed); weir says %v", answer.RetryAfter, again.Allowed, ours)
	assert.Greater(t, answer.RetryAfter, time.Duration(0))
	assert.Zero(t, again.Allowed)
	assert.ErrorIs(t, ours, ratelimit.ErrImpossible)
}
