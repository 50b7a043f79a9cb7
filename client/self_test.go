package client_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// restarted runs f with a new client of a bot whose session was kept, without an update
// handler, before the client has made any call.
func restarted(t *testing.T, w *world, opts invoke.Options, f func(ctx context.Context, c *client.Client)) {
	t.Helper()
	opts.Clock = w.now
	limiter, err := invoke.NewLimiter(opts)
	require.NoError(t, err)
	defer limiter.Close()
	c := w.client(t, client.Options{Options: invoke.Options{Limiter: limiter}})
	w.ResetRecord()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := time.AfterFunc(time.Minute, cancel)
	defer late.Stop()
	done := false
	err = c.Run(ctx, func(ctx context.Context) error {
		defer cancel()
		f(ctx, c)
		done = true
		return nil
	})
	require.True(t, done, "%v", err)
}

// burst sends four messages at once and checks that the gate of a bot's private chat holds
// back the fourth.
func burst(ctx context.Context, t *testing.T, w *world, c *client.Client) {
	t.Helper()
	to := w.AddUser("alice").InputPeer()
	for i := range 3 {
		require.NoError(t, send(c, ctx, to, fmt.Sprint(i)))
	}
	var refused *ratelimit.RefusedError
	require.ErrorAs(t, send(c, invoke.WithNoWait(ctx), to, "too early"), &refused)
	require.Equal(t, invoke.PrivateGate, refused.Gate)
}

func TestBotWithAKeptSessionHasChatGatesFromItsFirstSend(t *testing.T) {
	t.Run("no store", func(t *testing.T) {
		w := startWorld(t)
		for range 2 {
			restarted(t, w, invoke.Options{}, func(ctx context.Context, c *client.Client) {
				burst(ctx, t, w, c)
				require.Equal(t, 1, w.calls(getUsers), "it asks once")
			})
		}
	})
	t.Run("many at once", func(t *testing.T) {
		w := startWorld(t)
		to := w.AddUser("bob").InputPeer()
		restarted(t, w, invoke.Options{}, func(ctx context.Context, c *client.Client) {
			ctx = invoke.WithNoWait(ctx)
			var mu sync.Mutex
			sent := 0
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					if err := send(c, ctx, to, fmt.Sprint(i)); err == nil {
						mu.Lock()
						defer mu.Unlock()
						sent++
					} else {
						assert.ErrorIs(t, err, ratelimit.ErrRejected)
					}
				})
			}
			all.Wait()
			require.Equal(t, 3, sent, "the burst of a private chat")
			require.Equal(t, 1, w.calls(getUsers))
		})
	})
	t.Run("not needed", func(t *testing.T) {
		w := startWorld(t)
		to := w.AddUser("carol").InputPeer()
		for _, mode := range []invoke.ChatMode{invoke.ChatsAlways, invoke.ChatsNever} {
			restarted(t, w, invoke.Options{Chats: invoke.ChatLimits{Mode: mode}}, func(ctx context.Context, c *client.Client) {
				require.NoError(t, send(c, ctx, to, "x"))
				require.Zero(t, w.calls(getUsers))
			})
		}
	})
	t.Run("choices of the call", func(t *testing.T) {
		w := startWorld(t)
		restarted(t, w, invoke.Options{}, func(ctx context.Context, c *client.Client) {
			require.NoError(t, send(c, invoke.WithCost(ctx, 3), w.AddUser("dora").InputPeer(), "x"))
			require.Equal(t, 1, w.calls(getUsers))
			require.Equal(t, 36.0, c.Limiter().Stats()[classify.Global].Tokens, "one token for the question, three for the call")
		})
	})
}

func TestStoreRemembersThatTheAccountIsABot(t *testing.T) {
	w := startWorld(t)
	file, err := boltstore.Open(filepath.Join(t.TempDir(), "bot.db"), boltstore.Options{Clock: w.now})
	require.NoError(t, err)
	defer file.Close()
	account := func() store.Fact {
		facts, err := file.Load(t.Context())
		require.NoError(t, err)
		for _, f := range facts {
			if f.Key == "account" {
				return f
			}
		}
		return store.Fact{}
	}
	for start, asked := range []int{1, 0, 0} {
		w.now.Travel(time.Hour)
		restarted(t, w, invoke.Options{Store: file}, func(ctx context.Context, c *client.Client) {
			burst(ctx, t, w, c)
			require.Equal(t, asked, w.calls(getUsers), "start %d", start)
		})
		require.Contains(t, string(account().Value), `"bot":true`)
	}

	// One that an earlier version has made does not say it.
	var id int64
	_, err = fmt.Sscanf(string(account().Value), `{"id":%d,`, &id)
	require.NoError(t, err)
	require.NoError(t, file.Save(t.Context(), store.Fact{
		Key: "account", Value: fmt.Appendf(nil, `{"id":%d}`, id), Until: w.now.Now().Add(time.Hour),
	}))
	restarted(t, w, invoke.Options{Store: file}, func(ctx context.Context, c *client.Client) {
		burst(ctx, t, w, c)
		require.Equal(t, 1, w.calls(getUsers))
	})
	require.Contains(t, string(account().Value), `"bot":true`)
}

func TestSendGoesOnWhenTheAccountCannotBeAskedFor(t *testing.T) {
	t.Run("flooded", func(t *testing.T) {
		w := startWorld(t)
		to := w.AddUser("alice").InputPeer()
		restarted(t, w, invoke.Options{}, func(ctx context.Context, c *client.Client) {
			require.NoError(t, w.Flood(localdc.Scope{Method: getUsers}, time.Hour))
			require.NoError(t, send(c, ctx, to, "x"))
			require.NoError(t, send(c, ctx, to, "x"))
			require.Equal(t, 1, w.calls(getUsers), "the flood is known to the second")
			w.now.Travel(time.Hour)
			burst(ctx, t, w, c)
		})
	})
	t.Run("not logged in", func(t *testing.T) {
		w := startWorld(t)
		to := w.AddUser("alice").InputPeer()
		c := newClient(t, w.Cloud, client.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, c.Run(ctx, func(ctx context.Context) error {
			assert.True(t, tgerr.Is(send(c, ctx, to, "x"), "AUTH_KEY_UNREGISTERED"))
			assert.NoError(t, botLogin(ctx, w.Cloud, c))
			asked := w.calls(getUsers)
			assert.NoError(t, send(c, ctx, to, "x"))
			assert.Equal(t, asked, w.calls(getUsers), "the login has shown it")
			return nil
		}))
	})
	t.Run("cancelled", func(t *testing.T) {
		w := startWorld(t)
		to := w.AddUser("alice").InputPeer()
		restarted(t, w, invoke.Options{}, func(ctx context.Context, c *client.Client) {
			release, err := w.Hold(getUsers)
			require.NoError(t, err)
			defer release()
			short, cancel := context.WithCancel(ctx)
			first, second := call(func() error { return send(c, short, to, "x") }), call(func() error { return send(c, short, to, "x") })
			eventually(t, func() bool { return w.calls(getUsers) == 1 }, "one asks")
			cancel()
			require.ErrorIs(t, ended(t, first), context.Canceled)
			require.ErrorIs(t, ended(t, second), context.Canceled)
		})
	})
}
