package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
)

// A part that goes first after a premium wait may take its time on a slow line.
func TestPremiumWaitWithASlowPartEndsNoTransfer(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.FailNext(savePart, 420, "FLOOD_PREMIUM_WAIT_1", 2))
		release, err := w.Hold(savePart)
		require.NoError(t, err)
		done := stream(ctx, c, 2)
		eventually(t, func() bool { return w.calls(savePart) == 2 }, "both parts are on the wire")
		release()
		waitsForFlood(t, c, 2)
		release, err = w.Hold(savePart)
		require.NoError(t, err)
		w.now.Travel(time.Second)
		eventually(t, func() bool { return w.calls(savePart) == 3 }, "one goes first")
		waitsForFlood(t, c, 1)
		w.now.Travel(flood.FirstTimeout)
		eventually(t, func() bool { return w.calls(savePart) == 4 }, "the other need not wait for ever")
		w.now.Travel(time.Minute)
		release()
		require.NoError(t, ended(t, done))
		require.Equal(t, 4, w.calls(savePart))
	})
}
