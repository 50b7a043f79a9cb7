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

func TestTokenThatIsHandedOverStaysWithACallCancelledAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		narrow, wide := newGate(t, l, "narrow", 0.001, 1), newGate(t, l, "wide", 0.001, 1)
		for range 100 {
			require.NoError(t, l.Try(1, wide))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- l.Acquire(ctx, 1, narrow, wide) }()
			synctest.Wait()
			l.Refund(1, wide)
			cancel()
			require.NoError(t, <-done, "it was admitted before it was cancelled")
			require.Less(t, narrow.Stats().Tokens, 1.0)
			require.Less(t, wide.Stats().Tokens, 1.0)
			l.Refund(1, narrow, wide)
		}
	})
}

func TestTokenIsNotHandedToACallThatWasCancelledBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 0.001, 1)
		for range 100 {
			require.NoError(t, l.Try(1, g))
			ctx, cancel := context.WithCancel(t.Context())
			gone, next := make(chan error), make(chan error)
			go func() { gone <- l.Acquire(ctx, 1, g) }()
			synctest.Wait()
			go func() { next <- l.Acquire(t.Context(), 1, g) }()
			synctest.Wait()
			cancel()
			l.Refund(1, g)
			require.ErrorIs(t, <-gone, context.Canceled)
			require.NoError(t, <-next)
			l.Refund(1, g)
		}
	})
}

func TestTokensThatComeBackGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat := newGates(t, l, ratelimit.Limit{Rate: 0.001, Burst: 50}).Key(1)
		wide := newGate(t, l, "wide", 1000, 1000)
		require.NoError(t, l.Try(50, chat))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				assert.NoError(t, l.Acquire(t.Context(), 1, chat, wide))
				l.Refund(1, chat, wide)
			})
		}
		synctest.Wait()
		start := time.Now()
		for range 50 {
			l.Refund(1, chat)
		}
		wg.Wait()
		require.Zero(t, time.Since(start))
		require.Equal(t, 50.0, chat.Stats().Tokens)
		require.Equal(t, 1000.0, wide.Stats().Tokens)
	})
}
