package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/pool"
	"github.com/gotd/td/rpc"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/invoke"
)

// dying answers calls one after the other with the errors, and then without one.
func dying(t *testing.T, errs ...error) (call telegram.InvokeFunc, sent *int) {
	t.Helper()
	m, err := invoke.New(invoke.Options{})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	sent = new(int)
	return m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error {
		*sent++
		if *sent <= len(errs) {
			return errs[*sent-1]
		}
		return nil
	})), sent
}

var brokenPipe = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}

func TestReadWhoseConnectionIsLostIsSentAgain(t *testing.T) {
	for name, lost := range map[string]error{
		"broken pipe": brokenPipe, "end of file": io.EOF, "closed pipe": io.ErrClosedPipe,
		"dead connection": pool.ErrConnDead, "closed engine": rpc.ErrEngineClosed,
		"acknowledged": fmt.Errorf("rpcDoRequest: engine forcibly closed: %w", context.Canceled),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, sent := dying(t, lost, lost, lost)
				start := time.Now()
				require.NoError(t, call(t.Context(), &tg.UpdatesGetDifferenceRequest{}, nil))
				require.Equal(t, 4, *sent)
				require.Equal(t, 350*time.Millisecond, time.Since(start), "after 50, 100 and 200 ms")
			})
		})
	}
}

func TestMessageWhoseAnswerWasLostIsThereOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, sent := dying(t, brokenPipe, tgerr.New(500, "RANDOM_ID_DUPLICATE"))
		var answer tg.UpdatesBox
		require.NoError(t, call(t.Context(), to(1), &answer))
		require.Equal(t, 2, *sent)
		require.Equal(t, &tg.UpdatesTooLong{}, answer.Updates, "what the answer held is to be asked for")
	})
}

func TestRandomIDThatTheCallerUsedTwiceIsTheCallersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, sent := dying(t, tgerr.New(500, "RANDOM_ID_DUPLICATE"))
		require.True(t, tgerr.Is(call(t.Context(), to(1), &tg.UpdatesBox{}), "RANDOM_ID_DUPLICATE"))
		require.Equal(t, 1, *sent)
	})
}

func TestWhatMayHaveBeenDoneIsNotDoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, sent := dying(t, brokenPipe)
		require.ErrorIs(t, call(t.Context(), &tg.MessagesCreateChatRequest{Title: "new"}, nil), syscall.EPIPE)
		require.Equal(t, 1, *sent)
	})
}

func TestOtherErrorsAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := errors.New("cannot decode")
		call, sent := dying(t, odd)
		require.ErrorIs(t, call(t.Context(), &tg.UpdatesGetDifferenceRequest{}, nil), odd)
		require.Equal(t, 1, *sent)
	})
}

func TestRepeatingEndsWithTheContextAndWithTheMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make([]error, 1000)
		for i := range gone {
			gone[i] = brokenPipe
		}
		call, sent := dying(t, gone...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, call(ctx, &tg.UpdatesGetDifferenceRequest{}, nil), syscall.EPIPE, "what it died of")
		require.Less(t, *sent, 40, "every two seconds")

		m, err := invoke.New(invoke.Options{})
		require.NoError(t, err)
		end := time.AfterFunc(10*time.Second, m.Close)
		defer end.Stop()
		start := time.Now()
		closed := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return brokenPipe }))
		require.ErrorIs(t, closed(t.Context(), &tg.UpdatesGetDifferenceRequest{}, nil), syscall.EPIPE)
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

// A call that is not to wait does not wait for another connection either.
func TestCallThatIsNotToWaitIsNotRepeatedOnALineThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make([]error, 1000)
		for i := range gone {
			gone[i] = brokenPipe
		}
		call, sent := dying(t, gone...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, call(invoke.WithNoWait(ctx), &tg.UpdatesGetDifferenceRequest{}, nil), syscall.EPIPE)
		require.Zero(t, time.Since(start))
		require.Equal(t, 1, *sent)
	})
}
