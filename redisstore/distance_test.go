package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// With no settings at all, a bot on another continent than its server gets its calls through,
// under the policy that refuses what the server has not agreed to.
func TestCallsAreAdmittedByAServerThatIsFarAway(t *testing.T) {
	for _, each := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(fmt.Sprint(each, " each way"), func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			m.RequireAuth(secret)
			s := openURL(t, "redis://:"+secret+"@"+farAway(t, m.Addr(), each)+"/3")
			limiter, err := invoke.NewLimiter(invoke.Options{Store: s, OnFailure: store.FailClosed, Logger: zap.NewNop()})
			require.NoError(t, err)
			defer limiter.Close()
			for range 5 {
				_, err := limiter.TryAcquire(classify.Message)
				require.NoError(t, err)
			}
		})
	}
}

// Without a Check, the first calls find no connection, and the one that they began is there
// for later ones.
func TestConnectionThatTakesLongerThanACallServesLaterOnes(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireAuth(secret)
	s := openURL(t, "redis://:"+secret+"@"+farAway(t, m.Addr(), 50*time.Millisecond)+"/3?timeout=150ms")
	gate := []ratelimit.Charge{charge("g", perSecond(1, 100), 1)}
	_, _, err := s.Take(context.Background(), gate)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "no answer within 150ms")
	require.Eventually(t, func() bool {
		admitted, _, err := s.Take(context.Background(), gate)
		return err == nil && admitted
	}, 5*time.Second, 10*time.Millisecond)
}

// What was charged after its caller had gone is given back.
func TestLateTakeIsGivenBack(t *testing.T) {
	m := miniredis.RunT(t)
	far := openURL(t, "redis://"+farAway(t, m.Addr(), 50*time.Millisecond)+"?timeout=20ms")
	near := openURL(t, "redis://"+m.Addr())
	rule := perSecond(0.001, 1)
	_, _, err := far.Take(context.Background(), []ratelimit.Charge{charge("g", rule, 1)})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Eventually(t, func() bool { return len(m.Keys()) > 0 }, 5*time.Second, time.Millisecond, "it was charged")
	require.Eventually(t, func() bool {
		admitted, _, err := near.Take(context.Background(), []ratelimit.Charge{charge("g", rule, 1)})
		return err == nil && admitted
	}, 5*time.Second, 20*time.Millisecond)
}

// A Save that nobody waits for any more does not overwrite a later one.
func TestLateSaveIsNotTheLastWord(t *testing.T) {
	m := miniredis.RunT(t)
	s := openURL(t, "redis://"+farAway(t, m.Addr(), 50*time.Millisecond)+"?timeout=200ms")
	save := func(ctx context.Context, value string) error {
		return s.Save(ctx, store.Fact{Key: "k", Value: []byte(value), Until: time.Now().Add(time.Hour)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	require.Error(t, save(ctx, "old"))
	require.Eventually(t, func() bool { return save(context.Background(), "new") == nil }, 10*time.Second, time.Millisecond)
	s.saving <- struct{}{} // the old one is over
	<-s.saving
	require.Eventually(t, func() bool {
		facts, err := s.Load(context.Background())
		return err == nil && len(facts) == 1 && string(facts[0].Value) == "new"
	}, 10*time.Second, time.Millisecond)
}
