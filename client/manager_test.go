package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/telegram/updates/hook"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// withManager runs f as a program of each kind with an updates.Manager, which start
// starts, and a hook that feeds it.
func withManager(t *testing.T, f func(ctx context.Context, t *testing.T, w *world, p online, got *texts, start func())) {
	t.Helper()
	for _, way := range []string{"client", "middleware"} {
		t.Run(way, func(t *testing.T) {
			got := &texts{}
			d := tg.NewUpdateDispatcher()
			d.OnNewMessage(func(_ context.Context, _ tg.Entities, u *tg.UpdateNewMessage) error {
				got.add(u.Message)
				return nil
			})
			d.OnNewChannelMessage(func(_ context.Context, _ tg.Entities, u *tg.UpdateNewChannelMessage) error {
				got.add(u.Message)
				return nil
			})
			manager := updates.New(updates.Config{Handler: d})
			oneWay(t, way, manager, hook.UpdateHook(manager.Handle), func(ctx context.Context, t *testing.T, w *world, p online) {
				running, stop := context.WithCancel(ctx)
				var over <-chan error
				defer func() {
					stop()
					require.ErrorIs(t, ended(t, over), context.Canceled)
				}()
				self, err := p.api.UsersGetUsers(ctx, []tg.InputUserClass{&tg.InputUserSelf{}})
				require.NoError(t, err)
				f(ctx, t, w, p, got, func() {
					started := make(chan struct{})
					over = call(func() error {
						return manager.Run(running, p.api, self[0].GetID(), updates.AuthOptions{
							IsBot: true, OnStart: func(context.Context) { close(started) },
						})
					})
					<-started
				})
			})
		})
	}
}

// floodedFor blocks until a call of a method waits for a flood.
func (p online) floodedFor(t *testing.T, method string) {
	t.Helper()
	eventually(t, func() bool {
		for _, record := range p.limiter.Floods() {
			if record.Method == method && record.Waiting > 0 {
				return true
			}
		}
		return false
	}, "%s is flooded", method)
}

// gotd waits for the Manager, which waits for the flood, before it connects again.
func TestManagerWhoseDifferenceIsFloodedOutlivesCuts(t *testing.T) {
	withManager(t, func(ctx context.Context, t *testing.T, w *world, p online, got *texts, start func()) {
		alice := w.AddUser("alice")
		require.NoError(t, w.Flood(localdc.Scope{Method: getDifference}, time.Minute))
		start()
		p.floodedFor(t, getDifference)
		var want []string
		for cut := range 2 {
			want = append(want, said(alice, 30, fmt.Sprint("before cut ", cut))...)
			for range 5 { // they have arrived
				require.NoError(t, p.alive(ctx))
			}
			require.NotZero(t, w.Cut())
			require.NoError(t, p.alive(ctx))
		}
		w.now.Travel(time.Minute)
		eventually(t, func() bool { return got.has(want) }, "all arrive, each once")
		want = append(want, said(alice, 3, "after the flood")...)
		eventually(t, func() bool { return got.has(want) }, "it goes on")
	})
}

// The hook hands the answer of each send to the Manager, which takes ten of them while it
// waits for a flood.
func TestSendsReturnThoughTheHookedManagerIsFlooded(t *testing.T) {
	withManager(t, func(ctx context.Context, t *testing.T, w *world, p online, got *texts, start func()) {
		alice := w.AddUser("alice")
		require.NoError(t, w.Flood(localdc.Scope{Method: getDifference}, time.Hour))
		start()
		p.floodedFor(t, getDifference)
		for i := range 30 {
			require.NoError(t, ended(t, call(func() error {
				_, err := p.api.MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
					Peer: alice.InputPeer(), Message: "x", RandomID: time.Now().UnixNano() + int64(i),
				})
				return err
			})))
		}
		require.Len(t, answers(alice), 30)
		w.now.Travel(time.Hour)
	})
}

// A Manager takes ten updates of a channel while it waits for the channel's difference,
// and then none of any channel.
func TestFloodedDifferenceOfOneChannelHoldsUpNoOther(t *testing.T) {
	withManager(t, func(ctx context.Context, t *testing.T, w *world, p online, got *texts, start func()) {
		alice, flooded, other := w.AddUser("alice"), w.AddGroup("flooded"), w.AddGroup("other")
		start()
		require.NoError(t, w.Flood(localdc.Scope{Method: getChannelDifference, Chat: flooded.MarkedID()}, time.Hour))
		say := func(to *localdc.Chat, text string) {
			t.Helper()
			_, err := alice.SendTo(to, text)
			require.NoError(t, err)
		}
		var late []string
		for i := range 50 {
			late = append(late, fmt.Sprint("flooded ", i))
			say(flooded, late[i])
			if i == 0 {
				p.floodedFor(t, getChannelDifference)
			}
		}
		var want []string
		for i := range 3 {
			want = append(want, fmt.Sprint("other ", i))
			say(other, want[i])
			// One by one: a Manager that meets a channel by its second message skips the first.
			eventually(t, func() bool { return got.hasAll(want) }, "the other channel is heard")
		}
		want = append(want, said(alice, 3, "in private")...)
		eventually(t, func() bool { return got.hasAll(want) }, "private chats are heard")
		require.Equal(t, 1, len(w.Record().Floods()))
		w.now.Travel(time.Hour)
		eventually(t, func() bool { return got.has(append(want, late...)) }, "all arrive, each once")
		require.Less(t, w.calls(getChannelDifference), 12, "it does not spin")
		require.Empty(t, w.Record().Inside(0))
	})
}
