package invoke_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// parked is a connection whose calls end when the test says so, by chat.
type parked struct {
	mu    sync.Mutex
	calls map[int64]chan error
}

func (p *parked) call(chat int64) chan error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[int64]chan error{}
	}
	if p.calls[chat] == nil {
		p.calls[chat] = make(chan error, 1)
	}
	return p.calls[chat]
}

func (p *parked) Invoke(ctx context.Context, input bin.Encoder, _ bin.Decoder) error {
	select {
	case err := <-p.call(int64(chatOf(input))):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pendingOf are the tokens of messages that are not answered, at all gates alike.
func pendingOf(t testing.TB, l *invoke.Limiter) int {
	t.Helper()
	message := l.Stats()[classify.Message].Pending
	require.Equal(t, message, l.Stats()[classify.Global].Pending)
	require.Equal(t, message, l.GateStats()[invoke.PrivateGate].Pending)
	return message
}

// wired returns a middleware over a parked connection, and what sends a message to a chat in a
// goroutine of its own. Its error is the answer's or that of ctx.
func wired(t *testing.T) (*invoke.Middleware, *parked, func(ctx context.Context, chat int64)) {
	t.Helper()
	m, err := invoke.New(invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	p := &parked{}
	call := m.Handle(p)
	return m, p, func(ctx context.Context, chat int64) {
		go func() { _ = call(ctx, to(chat), nil) }()
		synctest.Wait()
	}
}

func TestCallIsPendingUntilItEnds(t *testing.T) {
	for name, end := range map[string]error{
		"answered": nil, "refused": tgerr.New(400, "PEER_ID_INVALID"), "flooded": tgerr.New(420, "FLOOD_WAIT_3600"),
		"connection lost": io.EOF, "not sent": invoke.ErrNotSent,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, p, send := wired(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				send(ctx, 1)
				time.Sleep(time.Hour)
				require.Equal(t, 1, pendingOf(t, m.Limiter()))
				p.call(1) <- end
				synctest.Wait()
				require.Zero(t, pendingOf(t, m.Limiter()))
			})
		})
	}
}

func TestPanicBelowLeavesNothingPendingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := invoke.New(invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}})
		require.NoError(t, err)
		defer m.Close()
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { panic("below") }))
		require.Panics(t, func() { _ = call(t.Context(), to(1), nil) })
		require.Equal(t, 1, pendingOf(t, m.Limiter()))
		time.Sleep(invoke.MaxUnanswered)
		synctest.Wait()
		require.Zero(t, pendingOf(t, m.Limiter()))
	})
}

func TestCallThatIsGivenUpStaysPendingForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, send := wired(t)
		for chat := range int64(2) {
			ctx, cancel := context.WithCancel(t.Context())
			send(ctx, chat+1)
			time.Sleep(10 * time.Second)
			cancel()
			synctest.Wait()
		}
		require.Equal(t, 2, pendingOf(t, m.Limiter()), "they may have arrived, or may yet")
		time.Sleep(invoke.MaxUnanswered - 10*time.Second)
		synctest.Wait()
		require.Equal(t, 1, pendingOf(t, m.Limiter()))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Zero(t, pendingOf(t, m.Limiter()))
	})
}

func TestLostConnectionSettlesWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p, send := wired(t)
		ctx, cancel := context.WithCancel(t.Context())
		send(ctx, 1)
		send(t.Context(), 2)
		cancel()
		synctest.Wait()
		m.SetOnline(false)
		require.Equal(t, 1, pendingOf(t, m.Limiter()), "gotd sends the other again")
		p.call(2) <- nil
		synctest.Wait()
		require.Zero(t, pendingOf(t, m.Limiter()))
	})
}

// A connection keeps its order: a call has arrived when one is answered that left clearly later.
func TestSlowCallIsSettledByALaterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p, send := wired(t)
		quick := func(chat int64) {
			send(t.Context(), chat)
			time.Sleep(50 * time.Millisecond)
			p.call(chat) <- nil
			synctest.Wait()
		}
		for chat := range int64(20) {
			quick(100 + chat) // so that the round trip is known
			time.Sleep(time.Second)
		}
		send(t.Context(), 1)
		time.Sleep(10 * time.Millisecond)
		quick(2)
		require.Equal(t, 1, pendingOf(t, m.Limiter()), "two goroutines may have overtaken each other")
		time.Sleep(100 * time.Millisecond)
		quick(3)
		require.Zero(t, pendingOf(t, m.Limiter()))
		time.Sleep(30 * time.Second)
		p.call(1) <- nil
		synctest.Wait()
		require.Zero(t, pendingOf(t, m.Limiter()), "its own answer does not settle it once more")
		require.Equal(t, 30.0, m.Limiter().Available()[classify.Message])

		send(t.Context(), 4)
		time.Sleep(110 * time.Millisecond)
		quick(5)
		require.Zero(t, pendingOf(t, m.Limiter()), "the slow answer says nothing about the line")
		p.call(4) <- nil
	})
}

func TestAnswerOnAnotherConnectionSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p, send := wired(t)
		send(t.Context(), 1)
		time.Sleep(10 * time.Second)
		pool := m.HandleDC(4, telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return nil }))
		require.NoError(t, pool(t.Context(), to(2), nil))
		require.Equal(t, 1, pendingOf(t, m.Limiter()))
		p.call(1) <- nil
	})
}

// One call takes the server 30 s. Those beside it use the limit to the full.
func TestSlowCallHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := invoke.New(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{
			classify.Message: ratelimit.Rate(10).Burst(2), classify.Global: ratelimit.Rate(10).Burst(2)}})
		require.NoError(t, err)
		defer m.Close()
		call := m.Handle(telegram.InvokeFunc(func(_ context.Context, input bin.Encoder, _ bin.Decoder) error {
			if chatOf(input) == 1 {
				time.Sleep(30 * time.Second)
			}
			time.Sleep(20 * time.Millisecond)
			return nil
		}))
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { assert.NoError(t, call(t.Context(), to(1), nil)) })
		synctest.Wait()
		start := time.Now()
		for range 200 {
			assert.NoError(t, call(t.Context(), to(2), nil))
		}
		require.Less(t, time.Since(start), 20*time.Second+time.Second)
	})
}

func TestPermitIsPendingUntilItsCallIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p, send := wired(t)
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		require.Equal(t, 1, m.Limiter().Stats()[classify.Message].Pending)
		send(invoke.WithPermit(t.Context(), permit), 1)
		require.Equal(t, 1, pendingOf(t, m.Limiter()))
		permit.Return() // too late
		p.call(1) <- nil
		synctest.Wait()
		require.Zero(t, pendingOf(t, m.Limiter()))

		permit, err = m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		permit.Return()
		require.Zero(t, pendingOf(t, m.Limiter()))
	})
}

func TestAcquireIsPendingUntilTheRequestHasReturned(t *testing.T) {
	m := invoke.Must(invoke.Options{})
	defer m.Close()
	settle, err := m.Acquire(t.Context(), classify.Bulk)
	require.NoError(t, err)
	require.Equal(t, 1, m.Limiter().Stats()[classify.Bulk].Pending)
	settle()
	settle()
	require.Zero(t, m.Limiter().Stats()[classify.Bulk].Pending)
	require.Zero(t, m.Limiter().Stats()[classify.Global].Pending)
}

// The first part of a file pays, and a message that pays to pass the limits has a gate of its own.
func TestFilesAndPaidMessagesAreSettledToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := invoke.Must(invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}})
		defer m.Close()
		answer := make(chan error)
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return <-answer }))
		paid := to(1)
		paid.SetAllowPaidFloodskip(true)
		for _, req := range []bin.Encoder{&tg.UploadSaveFilePartRequest{}, &tg.UploadSaveFilePartRequest{FilePart: 1}, paid} {
			go func() { _ = call(t.Context(), req, nil) }()
		}
		synctest.Wait()
		l := m.Limiter()
		require.Equal(t, 1, l.Stats()[classify.Media].Pending)
		require.Equal(t, 1, l.Stats()[classify.Global].Pending)
		require.Equal(t, 1, l.GateStats()[invoke.PaidGate].Pending)
		for range 3 {
			answer <- nil
		}
		synctest.Wait()
		require.Zero(t, l.Stats()[classify.Media].Pending)
		require.Zero(t, l.Stats()[classify.Global].Pending)
		require.Zero(t, l.GateStats()[invoke.PaidGate].Pending)
	})
}

func TestQueuedCallTellsHowManyAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events recorder
		m := invoke.Must(invoke.Options{Observer: &events, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}})
		defer m.Close()
		p := &parked{}
		call := m.Handle(p)
		for range 4 {
			go func() { _ = call(t.Context(), to(1), nil) }()
			synctest.Wait()
		}
		var queued []invoke.Event
		for _, e := range events.events {
			if e.Kind == invoke.Queued {
				queued = append(queued, e)
			}
		}
		require.Len(t, queued, 1)
		require.Equal(t, 3, queued[0].Pending)
		require.Equal(t, invoke.PrivateGate, queued[0].Gate)
		m.Close()
		for range 3 {
			p.call(1) <- errors.New("end")
		}
	})
}
