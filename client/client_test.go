package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/gotd/neo"
	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

func newCloud(t testing.TB, opts localdc.Options) *localdc.Cloud {
	t.Helper()
	cloud, err := localdc.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cloud.Close()) })
	return cloud
}

func newClient(t testing.TB, cloud *localdc.Cloud, opts client.Options) *client.Client {
	t.Helper()
	local := cloud.ClientOptions()
	opts.Telegram.PublicKeys, opts.Telegram.DCList, opts.Telegram.Resolver = local.PublicKeys, local.DCList, local.Resolver
	if opts.Telegram.DC == 0 {
		opts.Telegram.DC = local.DC
	}
	if opts.Telegram.SessionStorage == nil {
		opts.Telegram.SessionStorage = &session.StorageMemory{}
	}
	c, err := client.New(1, "hash", opts)
	require.NoError(t, err)
	return c
}

// asBot logs in and runs f.
func asBot(t testing.TB, c *client.Client, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.Run(ctx, func(ctx context.Context) error {
		if _, err := c.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		return f(ctx)
	}))
}

func send(c *client.Client, ctx context.Context, to tg.InputPeerClass, text string) error {
	id, err := c.RandInt64()
	if err != nil {
		return err
	}
	_, err = c.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: to, Message: text, RandomID: id})
	return err
}

func TestLoginThatMovesToAnotherDataCentrePassesTheChokePoint(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	c := newClient(t, cloud, client.Options{Telegram: telegram.Options{
		DC:            4,
		UpdateHandler: tg.NewUpdateDispatcher(),
	}})
	asBot(t, c, func(ctx context.Context) error {
		self, err := c.Self(ctx)
		if err != nil {
			return err
		}
		assert.True(t, self.Bot)
		assert.Equal(t, 2, c.Config().ThisDC)
		return nil
	})
}

func TestOverflowingWaitIsALongWait(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.FailNext(sendMessage, 420, "FLOOD_WAIT_99999999999999999999", 1))
		wait := asWait(t, send(c, ctx, w.AddUser("alice").InputPeer(), "x"))
		require.Equal(t, flood.MaxWait, wait.Wait)
	})
}

func TestCancelledRunAnswersEveryWaiter(t *testing.T) {
	w := startWorld(t)
	alice := w.AddUser("alice")
	c := w.client(t, client.Options{
		Options: invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(1)},
			Chats:      invoke.ChatLimits{Mode: invoke.ChatsNever},
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	err := c.Run(ctx, func(ctx context.Context) error {
		if err := send(c, ctx, alice.InputPeer(), "the only one"); err != nil {
			return err
		}
		for range 1000 {
			// Their context is not the client's, and f waits for them.
			wg.Go(func() { errs <- send(c, context.Background(), alice.InputPeer(), "never") })
		}
		assert.Eventually(t, func() bool {
			return c.Limiter().Stats()[classify.Message].Waiters == 1000
		}, 30*time.Second, time.Millisecond)
		cancel()
		wg.Wait()
		return nil
	})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	for range 1000 {
		require.ErrorIs(t, <-errs, invoke.ErrClosed)
	}
	require.Len(t, alice.Messages(), 1)
}

func TestConnectionCutWhileCallsWaitAndWhileOneIsAnswered(t *testing.T) {
	w := startWorld(t)
	alice := w.AddUser("alice")
	c := w.client(t, client.Options{
		Options: invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(50).Burst(1)},
			Chats:      invoke.ChatLimits{Mode: invoke.ChatsNever},
		},
	})
	require.NoError(t, c.Run(t.Context(), func(ctx context.Context) error {
		release, err := w.Hold("messages.sendMessage")
		if err != nil {
			return err
		}
		const n = 20
		errs := make(chan error, n)
		for range n {
			go func() { errs <- send(c, ctx, alice.InputPeer(), "x") }()
		}
		assert.Eventually(t, func() bool {
			return w.Record().Methods["messages.sendMessage"].Calls > 0
		}, 30*time.Second, time.Millisecond)
		w.Cut()
		release()
		for range n {
			// The call on the wire may have been carried out: sent again, its random_id is
			// known, and that is an answer as well.
			if err := <-errs; err != nil && !tgerr.Is(err, "RANDOM_ID_DUPLICATE") {
				return err
			}
		}
		assert.Len(t, alice.Messages(), n)
		return nil
	}))
}

func TestTwoClientsShareOneLimiterAndOneCloses(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world, c *client.Client, _ []*tg.Client) {
		alice := w.AddUser("alice")
		third := w.client(t, client.Options{Options: invoke.Options{Limiter: c.Limiter()}})
		require.NoError(t, third.Run(ctx, func(ctx context.Context) error {
			return send(third, ctx, alice.InputPeer(), "from one that closes")
		}))
		require.ErrorIs(t, send(third, ctx, alice.InputPeer(), "late"), invoke.ErrClosed)
		require.NoError(t, send(c, ctx, alice.InputPeer(), "from another"))
		require.Len(t, alice.Messages(), 2)
	})
}

func TestPermitOnTheWire(t *testing.T) {
	limits := map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(1)}
	inWorld(t, noChats(limits), func(ctx context.Context, w *world, c *client.Client) {
		alice := w.AddUser("alice")
		permit, err := c.TryAcquire(classify.Message)
		require.NoError(t, err)
		defer permit.Return()
		_, err = c.TryAcquire(classify.Message)
		require.ErrorIs(t, err, ratelimit.ErrRejected)
		require.NoError(t, send(c, invoke.WithPermit(ctx, permit), alice.InputPeer(), "prepaid"))
		err = send(c, invoke.WithNoWait(ctx), alice.InputPeer(), "not paid")
		require.ErrorIs(t, err, ratelimit.ErrRejected)
	})
}

func TestSessionIsKept(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	path := filepath.Join(t.TempDir(), "bot.session.json")
	open := func() *client.Client {
		return newClient(t, cloud, client.Options{Telegram: telegram.Options{SessionStorage: &client.SessionFile{Path: path}}})
	}
	asBot(t, open(), func(context.Context) error { return nil })
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c := open()
	require.NoError(t, c.Run(t.Context(), func(ctx context.Context) error {
		status, err := c.Auth().Status(ctx)
		assert.True(t, err == nil && status.Authorized, "logged in without a login: %v", err)
		return nil
	}))

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, damaged := range [][]byte{whole[:len(whole)/2], []byte("{}"), []byte("null"), []byte("[1]"), []byte(`{"Version":2,"Data":{}}`), make([]byte, 2<<20)} {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		err = open().Run(t.Context(), func(context.Context) error { return errors.New("must not connect") })
		require.ErrorContains(t, err, path+" is damaged or of another version")
		require.NotContains(t, err.Error(), string(whole[:20]))
	}

	leftovers, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, leftovers, 1)

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: ")

	path = ""
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: path is empty")

	path = filepath.Join(t.TempDir(), "missing", "bot.session.json")
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: no file can be made for "+path)
}

func TestLoginOfABotBringsTheGatesOfChats(t *testing.T) {
	now := neo.NewTime(time.Now())
	cloud := newCloud(t, localdc.Options{Limits: localdc.Published(), Clock: now})
	alice, group := cloud.AddUser("alice"), cloud.AddGroup("friends")
	limiter, err := invoke.NewLimiter(invoke.Options{
		Clock: now,
		Chats: invoke.ChatLimits{Group: ratelimit.To(ratelimit.Window{Limit: 3, Period: 2 * time.Second})},
	})
	require.NoError(t, err)
	c := newClient(t, cloud, client.Options{Options: invoke.Options{Limiter: limiter}})
	asBot(t, c, func(ctx context.Context) error {
		for _, chat := range []struct {
			gate string
			peer tg.InputPeerClass
			wait time.Duration // after 3
		}{
			{invoke.GroupGate, group.InputPeer(), 2 * time.Second},
			{invoke.PrivateGate, alice.InputPeer(), time.Second},
		} {
			for i := range 3 {
				if err := send(c, ctx, chat.peer, fmt.Sprint(i)); err != nil {
					return err
				}
			}
			ctx := invoke.WithNoWait(ctx)
			now.Travel(chat.wait - 1)
			var refused *ratelimit.RefusedError
			if assert.ErrorAs(t, send(c, ctx, chat.peer, "too early"), &refused) {
				assert.Equal(t, chat.gate, refused.Gate)
			}
			now.Travel(1)
			assert.NoError(t, send(c, ctx, chat.peer, "in time"))
		}
		assert.Equal(t, 29.0, c.Available()[classify.Message], "30, less one")
		assert.Less(t, c.Congestion(), 1.0)
		message, err := alice.Await(ctx, func(m tg.Message) bool { return m.Message == "in time" })
		assert.True(t, message.Out)
		return err
	})
	require.Empty(t, cloud.Record().Floods(), "the data centre has the same limit for a chat")
}

func TestClientRunsOnce(t *testing.T) {
	var c *client.Client
	inWorld(t, settings{}, func(_ context.Context, _ *world, running *client.Client) {
		c = running
		err := c.Run(t.Context(), func(context.Context) error { return errors.New("must not run") })
		require.ErrorContains(t, err, "a client runs once")
	})
	require.ErrorContains(t, c.Run(t.Context(), func(context.Context) error { return nil }), "a client runs once")
}

func TestBadArgumentsAreNamed(t *testing.T) {
	_, err := client.New(0, "", client.Options{})
	require.ErrorContains(t, err, "app id is 0")
	require.ErrorContains(t, err, "app hash is empty")
	_, err = client.New(1, "0123456789abcdef", client.Options{
		Options: invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(-1)},
		},
	})
	require.ErrorContains(t, err, "message.rate is -1")
	require.NotContains(t, err.Error(), "0123456789abcdef")
}

func TestUpdateLimitsWhileRunning(t *testing.T) {
	c, err := client.New(1, "hash", client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Burst(2)}))
	require.Equal(t, 2.0, c.Available()[classify.Media])
	require.Error(t, c.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Burst(-2)}))
}

// gotd's log begins at warnings. A program that logs nothing but errors is told of no mistake
// for that.
func TestLoggerOfErrorsAloneIsFine(t *testing.T) {
	var complaints bytes.Buffer
	core, _ := observer.New(zap.ErrorLevel)
	_, err := client.New(1, "hash", client.Options{
		Options: invoke.Options{
			Logger: zap.New(core, zap.ErrorOutput(zapcore.AddSync(&complaints))),
		},
	})
	require.NoError(t, err)
	require.Empty(t, complaints.String())
}
