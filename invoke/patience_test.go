package invoke_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

func typing() *tg.MessagesSetTypingRequest {
	return &tg.MessagesSetTypingRequest{Peer: &tg.InputPeerUser{UserID: 1}, Action: &tg.SendMessageTypingAction{}}
}

func TestTypingNoticeGivesUpAfterTwoSeconds(t *testing.T) {
	t.Run("of a flood", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := floods(1, "FLOOD_WAIT_3")
			_, call := choke(t, invoke.Options{}, s)
			start := time.Now()
			requireWait(t, call(t.Context(), typing(), nil))
			requireWait(t, call(t.Context(), typing(), nil))
			require.Zero(t, time.Since(start))
			require.Equal(t, 1, s.count())

			time.Sleep(1500 * time.Millisecond)
			require.NoError(t, call(t.Context(), typing(), nil), "what is left is short enough")
			require.Equal(t, 3*time.Second, time.Since(start))
		})
	})
	t.Run("unless its threshold is given", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, call := choke(t, invoke.Options{}, floods(1, "FLOOD_WAIT_3"))
			require.NoError(t, call(invoke.WithThreshold(t.Context(), flood.UpTo(5*time.Second)), typing(), nil))
		})
	})
	t.Run("of a wait for tokens", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			_, call := choke(t, invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{
				classify.Message: ratelimit.Rate(0.3).Burst(1),
			}}, s)
			require.NoError(t, call(t.Context(), to(1), nil))
			start := time.Now()
			err := call(t.Context(), typing(), nil)
			require.ErrorIs(t, err, ratelimit.ErrDeferred)
			require.Zero(t, time.Since(start), "there is no room within 2 s, and that is known")
			require.Equal(t, 1, s.count())
		})
	})
	t.Run("at a paused gate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			_, call := choke(t, invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0)}}, s)
			start := time.Now()
			require.ErrorIs(t, call(t.Context(), typing(), nil), ratelimit.ErrDeferred)
			require.Equal(t, 2*time.Second, time.Since(start))

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := call(ctx, typing(), nil)
			require.ErrorIs(t, err, context.DeadlineExceeded, "it is the caller's own that was done")
			require.NotErrorIs(t, err, ratelimit.ErrDeferred)
		})
	})
}

func TestUpdateDifferenceWaitsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		s := floods(8, "FLOOD_WAIT_300") // more often than other calls are sent again, and longer than they wait
		_, call := choke(t, invoke.Options{Observer: r}, s)
		start := time.Now()
		require.NoError(t, call(t.Context(), &tg.UpdatesGetDifferenceRequest{}, nil))
		require.GreaterOrEqual(t, time.Since(start), 8*300*time.Second)
		require.Equal(t, 9, s.count(), "it does not spin")
		require.Contains(t, r.kinds(), "flooded", "the wait is said")

		ctx, cancel := context.WithCancel(t.Context())
		s.answer = floods(1, "FLOOD_WAIT_300").answer
		s.calls = 0
		time.AfterFunc(time.Minute, cancel)
		require.ErrorIs(t, call(ctx, &tg.UpdatesGetChannelDifferenceRequest{Channel: &tg.InputChannel{ChannelID: 1}}, nil), context.Canceled)
	})
}
