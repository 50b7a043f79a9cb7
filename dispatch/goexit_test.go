package dispatch_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/dispatch"
)

// A test that fails inside a handler ends the handler's goroutine. The chat goes on, and so
// does the room that its goroutine had.
func TestHandlerThatEndsItsGoroutineDoesNotSilenceItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled []int
		d := dispatch.New(telegram.UpdateHandlerFunc(func(_ context.Context, u tg.UpdatesClass) error {
			pts := u.(*tg.Updates).Updates[0].(*tg.UpdateNewMessage).Pts
			handled = append(handled, pts)
			if pts == 1 {
				runtime.Goexit()
			}
			return nil
		}), dispatch.Options{MaxHandlers: 1})
		for pts := 1; pts <= 3; pts++ {
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts))))
		}
		require.NoError(t, d.Handle(t.Context(), packet(message(2, 4))))
		synctest.Wait()
		require.ElementsMatch(t, []int{1, 2, 3, 4}, handled)
		require.Zero(t, d.Waiting())
		d.Close()
	})
}
