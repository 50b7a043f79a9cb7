package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/updates/hook"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// online is a program that is connected: with Weir's client, or with gotd's, the
// middleware and a dispatcher.
type online struct {
	api     *tg.Client
	migrate func(ctx context.Context, dc int) error
	login   func(ctx context.Context) error
	limiter *invoke.Limiter
	waiting func() int // updates
}

// bothWays runs f as a program of each kind.
func bothWays(t *testing.T, handler telegram.UpdateHandler, f func(ctx context.Context, t *testing.T, w *world, p online)) {
	t.Helper()
	for _, way := range []string{"client", "middleware"} {
		t.Run(way, func(t *testing.T) { oneWay(t, way, handler, nil, f) })
	}
}

func oneWay(t *testing.T, way string, handler telegram.UpdateHandler, hooked telegram.Middleware, f func(ctx context.Context, t *testing.T, w *world, p online)) {
	w := startWorld(t)
	limiter, err := invoke.NewLimiter(invoke.Options{
		Clock: w.now, Learning: invoke.Off, Chats: invoke.ChatLimits{Mode: invoke.ChatsNever},
		RateLimits: map[classify.Category]ratelimit.Change{
			classify.Global: ratelimit.Rate(1e6).Burst(100_000), classify.Query: ratelimit.Rate(1e6).Burst(100_000),
		},
	})
	require.NoError(t, err)
	defer limiter.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	var run func(context.Context, func(context.Context) error) error
	p := online{limiter: limiter}
	token := func(ctx context.Context, bot func(context.Context, string) (*tg.AuthAuthorization, error)) error {
		_, err := bot(ctx, localdc.DemoBotToken)
		return err
	}
	if way == "client" {
		opts := client.Options{Options: invoke.Options{Limiter: limiter}}
		opts.Telegram.UpdateHandler = handler
		if hooked != nil {
			opts.Telegram.Middlewares = []telegram.Middleware{hooked}
		}
		c := w.client(t, opts)
		run, p.api, p.migrate, p.waiting = c.Run, c.API(), c.MigrateTo, c.UpdatesWaiting
		p.login = func(ctx context.Context) error { return token(ctx, c.Auth().Bot) }
	} else {
		opts := w.ClientOptions()
		opts.SessionStorage = w.session.Clone()
		updates := dispatch.New(handler, dispatch.Options{})
		defer updates.Close()
		opts.UpdateHandler = updates
		opts.Middlewares = []telegram.Middleware{updates.Differences(), invoke.Must(invoke.Options{Limiter: limiter})}
		if hooked != nil {
			opts.Middlewares = append(opts.Middlewares, updates.Hook(hooked.(hook.UpdateHook)))
		}
		c := telegram.NewClient(1, "hash", opts)
		run, p.api, p.migrate, p.waiting = c.Run, c.API(), c.MigrateTo, updates.Waiting
		p.login = func(ctx context.Context) error { return token(ctx, c.Auth().Bot) }
	}
	over := call(func() error {
		return run(ctx, func(ctx context.Context) error {
			defer cancel()
			if err := p.alive(ctx); err != nil {
				return err
			}
			f(ctx, t, w, p)
			return nil
		})
	})
	select {
	case err := <-over:
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	case <-time.After(2 * patience):
		require.Fail(t, "Run does not end")
	}
}

// alive makes a call that needs no token of those that are paused, until one succeeds: the
// one that meets a cut fails.
func (p online) alive(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil {
		if _, err = p.api.UsersGetUsers(ctx, []tg.InputUserClass{&tg.InputUserSelf{}}); err == nil {
			return nil
		}
		<-again.C
	}
	return err
}

// settled blocks until what was sent is answered: floods stand, and no more calls come.
func (p online) settled(ctx context.Context, t *testing.T, w *world) {
	t.Helper()
	eventually(t, func() bool {
		before := w.calls(sendMessage)
		for range 5 {
			if p.alive(ctx) != nil {
				return false
			}
		}
		return len(p.limiter.Floods()) > 0 && w.calls(sendMessage) == before
	}, "the flood is met")
}

// echo answers each message, and remembers what it was called for.
type echo struct {
	mu      sync.Mutex
	api     *tg.Client
	id      int64
	handled map[string]int
}

func (e *echo) handler() telegram.UpdateHandler {
	d := tg.NewUpdateDispatcher()
	d.OnNewMessage(func(ctx context.Context, _ tg.Entities, u *tg.UpdateNewMessage) error {
		m, ok := u.Message.(*tg.Message)
		if !ok || m.Out {
			return nil
		}
		peer := m.PeerID.(*tg.PeerUser)
		e.mu.Lock()
		e.handled[fmt.Sprint(peer.UserID, m.Message)]++
		e.id++
		id, api := time.Now().UnixNano()+e.id, e.api
		e.mu.Unlock()
		_, err := api.MessagesSendMessage(invoke.WithThreshold(ctx, flood.Always), &tg.MessagesSendMessageRequest{
			Peer: &tg.InputPeerUser{UserID: peer.UserID}, Message: "re " + m.Message, RandomID: id,
		})
		return err
	})
	return d
}

func (e *echo) start(p online) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.api, e.handled = p.api, map[string]int{}
}

// answers are the texts that a user got.
func answers(user *localdc.User) (out []string) {
	for _, m := range user.Messages() {
		if m.Out {
			out = append(out, m.Message)
		}
	}
	return out
}

func pause(t *testing.T, p online, rate ratelimit.Change) {
	t.Helper()
	require.NoError(t, p.limiter.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Message: rate}))
}

// TestHandlersThatWaitDoNotKillTheClient is about a handler that waits while the
// connection is cut or moves, or while a flood comes: gotd waits for its goroutine before
// it connects again, so the client would be without a connection for good.
func TestHandlersThatWaitDoNotKillTheClient(t *testing.T) {
	events := []struct {
		name string
		do   func(ctx context.Context, t *testing.T, w *world, p online)
	}{
		{"cut", func(ctx context.Context, t *testing.T, w *world, p online) {
			for range 2 {
				require.NotZero(t, w.Cut())
				require.NoError(t, p.alive(ctx))
			}
		}},
		{"move", func(ctx context.Context, t *testing.T, w *world, p online) {
			moving, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			require.NoError(t, p.migrate(moving, 4))
			require.NoError(t, p.login(ctx), "which moves back")
		}},
		{"flood", func(ctx context.Context, t *testing.T, w *world, p online) {
			require.NoError(t, w.Flood(localdc.Scope{Method: sendMessage}, 8*time.Second))
			pause(t, p, ratelimit.Rate(1e6).Burst(10_000))
			p.settled(ctx, t, w)
			require.NotZero(t, w.Cut())
			require.NoError(t, p.alive(ctx))
		}},
	}
	for _, event := range events {
		for _, n := range []int{1, 25, 1000} {
			t.Run(fmt.Sprintf("%s/%d", event.name, n), func(t *testing.T) {
				e := &echo{}
				bothWays(t, e.handler(), func(ctx context.Context, t *testing.T, w *world, p online) {
					e.start(p)
					pause(t, p, ratelimit.Rate(0))
					users := make([]*localdc.User, n)
					for i := range users {
						users[i] = w.AddUser(fmt.Sprintf("%s %d", event.name, i))
						users[i].Send("1")
					}
					eventually(t, func() bool { return p.limiter.Stats()[classify.Message].Waiters == n }, "all handlers wait")
					event.do(ctx, t, w, p)
					for i, text := range []string{"2", "3"} {
						for _, user := range users {
							user.Send(text)
						}
						if event.name != "flood" { // which may be over for some
							eventually(t, func() bool { return p.waiting() == (i+1)*n }, "they wait in line")
						}
					}
					pause(t, p, ratelimit.Rate(1e6).Burst(10_000))
					w.spend(t, time.Second, func() bool {
						return !slices.ContainsFunc(users, func(u *localdc.User) bool { return len(answers(u)) < 3 })
					})
					for _, user := range users {
						assert.Equal(t, []string{"re 1", "re 2", "re 3"}, answers(user), "in order, and nothing twice")
					}
					e.mu.Lock()
					defer e.mu.Unlock()
					for what, times := range e.handled {
						assert.Equal(t, 1, times, what)
					}
				})
			})
		}
	}
}

// A handler that still waits when Run ends has returned when Run returns.
func TestHandlersThatWaitEndWithRun(t *testing.T) {
	const n = 100
	var mu sync.Mutex
	started, returned := 0, 0
	handler := telegram.UpdateHandlerFunc(func(ctx context.Context, _ tg.UpdatesClass) error {
		mu.Lock()
		started++
		mu.Unlock()
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		returned++
		return ctx.Err()
	})
	bothWays(t, handler, func(ctx context.Context, t *testing.T, w *world, p online) {
		started, returned = 0, 0
		t.Cleanup(func() { require.Equal(t, started, returned) })
		for i := range n {
			w.AddUser(fmt.Sprint("waits ", i)).Send("1")
		}
		eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return started >= n // the data centre may have an update of its own
		}, "all handlers run")
	})
}
