package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

// line is the network of a client, which can be taken away.
type line struct {
	mu    sync.Mutex
	down  error
	conns []net.Conn
	dials int
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	if l.down != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: l.down}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// set loses the line with all its connections, or brings it back.
func (l *line) set(down error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

func (l *line) dialed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// over returns a client that reaches the cloud over the line, and what it logs at any level.
func over(t *testing.T, cloud *localdc.Cloud, l *line, opts client.Options) (*client.Client, *observer.ObservedLogs) {
	t.Helper()
	local := cloud.ClientOptions()
	core, logged := observer.New(zap.DebugLevel)
	opts.Logger = zap.New(core)
	opts.Telegram.PublicKeys, opts.Telegram.DCList, opts.Telegram.DC = local.PublicKeys, local.DCList, local.DC
	opts.Telegram.Resolver = dcs.Plain(dcs.PlainOptions{Dial: l.dial})
	c, err := client.New(1, "hash", opts)
	require.NoError(t, err)
	return c, logged
}

// lines are the messages of a log with their errors.
func lines(logged *observer.ObservedLogs) (all []string) {
	for _, entry := range logged.All() {
		text := entry.Message
		if cause, ok := entry.ContextMap()["error"].(string); ok {
			text += ": " + cause
		}
		all = append(all, text)
	}
	return all
}

func TestRunThatWasNeverConnectedSaysWhy(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &events{}
			l := &line{down: syscall.ECONNREFUSED}
			c, logged := over(t, cloud, l, client.Options{
				Options:  invoke.Options{Observer: r},
				Telegram: telegram.Options{UpdateHandler: tg.NewUpdateDispatcher()}, // gotd asks for itself
			})
			ctx, cancel := end(t.Context())
			defer cancel()
			err := c.Run(ctx, func(context.Context) error { return errors.New("must not run") })
			require.ErrorIs(t, err, client.ErrNeverConnected)
			require.ErrorIs(t, err, ctx.Err())
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			require.ErrorContains(t, err, "tries, the last of which failed: ")

			require.Greater(t, l.dialed(), 2)
			all := lines(logged)
			require.Len(t, all, 1, "%q", all)
			require.True(t, strings.HasPrefix(all[0], "No connection: "), all[0])
			require.Contains(t, all[0], "connection refused")
			require.Empty(t, r.of(invoke.Sent, "users.getUsers"), "nothing has left")
		})
	}
}

func TestRunThatEndsBeforeItsFirstTryHasFailedWasNeverConnected(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	c, logged := over(t, cloud, &line{}, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Run(ctx, func(context.Context) error { return errors.New("must not run") })
	require.ErrorIs(t, err, client.ErrNeverConnected)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, lines(logged))
}

func TestLostConnectionIsLoggedOnceACauseAndSoIsTheNext(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	l, r := &line{}, &events{}
	c, logged := over(t, cloud, l, client.Options{
		Options:  invoke.Options{Observer: r},
		Telegram: telegram.Options{UpdateHandler: tg.NewUpdateDispatcher()},
	})
	asBot(t, c, func(ctx context.Context) error {
		require.Empty(t, lines(logged), "the first connection is nothing to log")
		alice := cloud.AddUser("alice")
		tokens := c.Available()[classify.Message]
		l.set(syscall.ECONNREFUSED)
		eventually(t, func() bool { return l.dialed() > 4 }, "it tries again")

		// A call that cannot leave is not counted, and its tokens come back.
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		err := send(c, short, alice.InputPeer(), "lost")
		assert.ErrorIs(t, err, invoke.ErrNotSent)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "messages.sendMessage not sent: ")
		assert.Empty(t, r.of(invoke.Sent, sendMessage))
		assert.Len(t, r.of(invoke.GivenUp, sendMessage), 1)
		assert.GreaterOrEqual(t, c.Available()[classify.Message], tokens)

		l.set(syscall.ENETUNREACH)
		tried := l.dialed()
		eventually(t, func() bool { return l.dialed() > tried+1 }, "it tries again")
		l.set(nil)
		if err := send(c, ctx, alice.InputPeer(), "there again"); err != nil {
			return err
		}
		assert.Len(t, r.of(invoke.Sent, sendMessage), 1)
		eventually(t, func() bool { return logged.FilterMessageSnippet("Connected again after ").Len() == 1 }, "it says so")
		return nil
	})
	all := lines(logged)
	var causes []string
	for _, text := range all {
		require.NotContains(t, text, "context canceled")
		if strings.Contains(text, "onnection") && !strings.Contains(text, "Connected") {
			causes = append(causes, text)
		}
	}
	require.Len(t, causes, 3, "%q", all)
	require.Contains(t, causes[0], "Connection lost: ")
	require.Contains(t, causes[1], "No connection: ")
	require.Contains(t, causes[1], "connection refused")
	require.Contains(t, causes[2], "network is unreachable")
	tries, ok := logged.FilterMessageSnippet("Connected again after ").All()[0].ContextMap()["tries"].(int64)
	require.True(t, ok)
	require.Greater(t, tries, int64(3))
}
