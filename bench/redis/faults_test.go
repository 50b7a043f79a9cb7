package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/redisstore"
)

// The faults of redis_rate that this store does not have. The peer's side is asserted
// too: should it be mended, the test says so.

type both struct {
	server *miniredis.Miniredis
	now    time.Time
	peer   *redis_rate.Limiter
	weir   *quota.Limiter
}

func start(t *testing.T) *both {
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	s, err := redisstore.New(redisstore.Options{Client: c, Account: "a", Timeout: 10 * time.Second})
	require.NoError(t, err)
	limiter, err := quota.New(quota.Options{Store: s})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, limiter.Close())
		require.NoError(t, s.Close())
		require.NoError(t, c.Close())
	})
	b := &both{server: m, now: time.Now(), peer: redis_rate.NewLimiter(c), weir: limiter}
	m.SetTime(b.now)
	return b
}

func (b *both) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.server.SetTime(b.now)
}

func TestClockSetBackLocksAKey(t *testing.T) {
	b, ctx := start(t), context.Background()
	limit, w := redis_rate.PerSecond(1), quota.Window{Limit: 1, Period: time.Second, Kind: quota.Bucket}
	theirs, err := b.peer.Allow(ctx, "k", limit)
	require.NoError(t, err)
	require.Equal(t, 1, theirs.Allowed)
	ours, err := b.weir.Charge(ctx, "k", w)
	require.NoError(t, err)
	require.False(t, ours.Limited)

	b.pass(-10 * time.Minute)
	theirs, err = b.peer.Allow(ctx, "k", limit)
	require.NoError(t, err)
	require.Greater(t, theirs.RetryAfter, 9*time.Minute, "redis_rate: locked for as long as the clock was set back")
	ours, err = b.weir.Charge(ctx, "k", w)
	require.NoError(t, err)
	require.True(t, ours.Limited)
	require.Equal(t, time.Second, ours.RetryAfter)
	b.pass(time.Second)
	ours, err = b.weir.Charge(ctx, "k", w)
	require.NoError(t, err)
	require.False(t, ours.Limited)
}

func TestACostThatNeverFitsIsGivenAWait(t *testing.T) {
	b, ctx := start(t), context.Background()
	theirs, err := b.peer.AllowN(ctx, "k", redis_rate.PerSecond(1), 5)
	require.NoError(t, err)
	require.Positive(t, theirs.RetryAfter)
	b.pass(theirs.RetryAfter)
	theirs, err = b.peer.AllowN(ctx, "k", redis_rate.PerSecond(1), 5)
	require.NoError(t, err)
	require.Zero(t, theirs.Allowed, "redis_rate: it waited as told, in vain")

	_, err = b.weir.ChargeN(ctx, "k", quota.Window{Limit: 1, Period: time.Second, Kind: quota.Bucket}, 5)
	require.True(t, errors.Is(err, quota.ErrImpossible))
}
