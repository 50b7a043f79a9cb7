package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirtg/weir/ratelimit"
)

// TestMain checks that the tests which do not run in a bubble end what they start. A
// bubble checks that by itself.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gate(t *testing.T, rule ratelimit.Rule) (*ratelimit.Limiter, ratelimit.Gate) {
	t.Helper()
	l := ratelimit.New(ratelimit.Options{})
	g, err := l.NewGate("gate", rule)
	require.NoError(t, err)
	return l, g
}

func drain(t *testing.T, l *ratelimit.Limiter, g ratelimit.Gate, tokens int) {
	t.Helper()
	require.NoError(t, l.Try(tokens, g))
}

// took is how long f takes, which must not fail.
func took(t *testing.T, f func() error) time.Duration {
	t.Helper()
	start := time.Now()
	require.NoError(t, f())
	return time.Since(start)
}

// crowd calls f n times together.
func crowd(n int, f func(i int)) *sync.WaitGroup {
	wg := &sync.WaitGroup{}
	for i := range n {
		wg.Go(func() { f(i) })
	}
	return wg
}

// send is a message to a private chat.
func send(chat int64) *tg.MessagesSendMessageRequest {
	return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: chat}, Message: "hello"}
}

// server answers a message to a chat.
type server func(ctx context.Context, chat int64) error

func (s server) Invoke(ctx context.Context, input bin.Encoder, _ bin.Decoder) error {
	return s(ctx, input.(*tg.MessagesSendMessageRequest).Peer.(*tg.InputPeerUser).UserID)
}

// client sends a message to a chat by way of a middleware.
func client(m telegram.Middleware, s server) func(ctx context.Context, chat int64) error {
	next := m.Handle(s)
	return func(ctx context.Context, chat int64) error { return next(ctx, send(chat), &tg.UpdatesBox{}) }
}
