package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/localdc"
)

const (
	getState             = "updates.getState"
	getDifference        = "updates.getDifference"
	getChannelDifference = "updates.getChannelDifference"
)

// texts are the messages that have come.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (x *texts) add(m tg.MessageClass) {
	if m, ok := m.(*tg.Message); ok && !m.Out {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.all = append(x.all, m.Message)
	}
}

// has tells whether all of them have come, each once.
func (x *texts) has(want []string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	got := slices.Clone(x.all)
	slices.Sort(got)
	return slices.Equal(slices.Sorted(slices.Values(want)), got)
}

// hasAll tells whether all of them have come, and perhaps others.
func (x *texts) hasAll(want []string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(want, func(text string) bool { return !slices.Contains(x.all, text) })
}

// withUpdates runs f with a client, and gotd's engine of updates for it, which f starts.
// The engine has to be alive when f returns.
func withUpdates(t *testing.T, f func(ctx context.Context, w *world, c *client.Client, got *texts, start func() (started <-chan struct{}))) {
	t.Helper()
	got := &texts{}
	dispatcher := tg.NewUpdateDispatcher()
	dispatcher.OnNewMessage(func(_ context.Context, _ tg.Entities, u *tg.UpdateNewMessage) error {
		got.add(u.Message)
		return nil
	})
	dispatcher.OnNewChannelMessage(func(_ context.Context, _ tg.Entities, u *tg.UpdateNewChannelMessage) error {
		got.add(u.Message)
		return nil
	})
	engine := updates.New(updates.Config{Handler: dispatcher})
	var s settings
	s.client.Telegram.UpdateHandler = engine
	inWorld(t, s, func(ctx context.Context, w *world, c *client.Client) {
		self, err := c.Self(ctx)
		require.NoError(t, err)
		running, stop := context.WithCancel(ctx)
		defer stop()
		var over <-chan error
		f(ctx, w, c, got, func() <-chan struct{} {
			started := make(chan struct{})
			over = call(func() error {
				return engine.Run(running, c.API(), self.ID, updates.AuthOptions{
					IsBot: true, OnStart: func(context.Context) { close(started) },
				})
			})
			return started
		})
		require.Empty(t, over, "the engine lives")
		stop()
		require.ErrorIs(t, ended(t, over), context.Canceled)
	})
}

// said makes a user write n messages.
func said(user *localdc.User, n int, about string) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%s %02d", about, i))
		user.Send(texts[i])
	}
	return texts
}

func waiting(c *client.Client, method string) bool {
	for _, record := range c.Floods() {
		if record.Method == method && record.Waiting > 0 {
			return true
		}
	}
	return false
}

func TestUpdatesArriveThoughTheirDifferenceIsFlooded(t *testing.T) {
	withUpdates(t, func(ctx context.Context, w *world, c *client.Client, got *texts, start func() <-chan struct{}) {
		alice := w.AddUser("alice")
		// A wait that is sat out by default, and one that no other call would sit out.
		require.NoError(t, w.Flood(localdc.Scope{Method: getState}, 2*time.Second))
		require.NoError(t, w.Flood(localdc.Scope{Method: getDifference}, time.Hour))
		start()
		eventually(t, func() bool { return waiting(c, getState) }, "the state is flooded")
		w.now.Travel(2 * time.Second)
		eventually(t, func() bool { return waiting(c, getDifference) }, "the difference is flooded")

		// More messages than the engine has room for; and the bot is not deaf meanwhile.
		want := said(alice, 30, "during the flood")
		require.NoError(t, ended(t, call(func() error { return send(c, ctx, alice.InputPeer(), "I am here") })))
		require.True(t, got.has(nil))
		require.Equal(t, 1, w.calls(getDifference), "it waits, and does not ask again")

		w.now.Travel(time.Hour)
		eventually(t, func() bool { return got.has(want) }, "all arrive, each once")
		require.Equal(t, 2, w.calls(getState))
		require.Less(t, w.calls(getDifference), 10, "it does not spin")

		want = append(want, said(alice, 3, "after it")...)
		eventually(t, func() bool { return got.has(want) }, "it goes on")
		require.Empty(t, w.Record().Inside(0))
	})
}

func TestUpdatesMissedWhileAwayArriveThoughTheirDifferenceIsFlooded(t *testing.T) {
	withUpdates(t, func(ctx context.Context, w *world, c *client.Client, got *texts, start func() <-chan struct{}) {
		alice := w.AddUser("alice")
		<-start()
		want := said(alice, 1, "before")
		eventually(t, func() bool { return got.has(want) }, "it works")
		w.ResetRecord()

		// More floods in a row than any other call would sit out.
		const floods = 8
		require.NoError(t, w.FailNext(getDifference, 420, "FLOOD_WAIT_30", floods))
		w.Cut()
		want = append(want, said(alice, 5, "while away")...)
		w.spend(t, time.Second, func() bool { return got.has(want) })
		require.GreaterOrEqual(t, w.calls(getDifference), floods+1)
		require.Less(t, w.calls(getDifference), floods+10, "it does not spin")
	})
}

func TestUpdatesOfAChannelArriveThoughTheirDifferenceIsFlooded(t *testing.T) {
	withUpdates(t, func(ctx context.Context, w *world, c *client.Client, got *texts, start func() <-chan struct{}) {
		alice, flooded, other := w.AddUser("alice"), w.AddGroup("flooded"), w.AddGroup("other")
		<-start()
		require.NoError(t, w.Flood(localdc.Scope{Method: getChannelDifference, Chat: flooded.MarkedID()}, time.Hour))
		say := func(to *localdc.Chat, text string) string {
			t.Helper()
			_, err := alice.SendTo(to, text)
			require.NoError(t, err)
			return text
		}
		late := []string{say(flooded, "flooded 1")}
		eventually(t, func() bool { return waiting(c, getChannelDifference) }, "the difference is flooded")
		late = append(late, say(flooded, "flooded 2"))
		var want []string
		for i := range 2 {
			want = append(want, say(other, fmt.Sprint("other ", i)))
			eventually(t, func() bool { return got.hasAll(want) }, "another channel is not held up")
		}
		w.now.Travel(time.Hour)
		want = append(want, late...)
		eventually(t, func() bool { return got.has(want) }, "all arrive, each once")
		require.Less(t, w.calls(getChannelDifference), 10, "it does not spin")
		require.Empty(t, w.Record().Inside(0))
	})
}
