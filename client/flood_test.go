package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

// everywhere runs f with the ways to the account that share a limiter: two clients and a
// pool of each.
func everywhere(t *testing.T, f func(ctx context.Context, w *world, c *client.Client, ways []*tg.Client)) {
	t.Helper()
	inWorld(t, noChats(nil), func(ctx context.Context, w *world, c *client.Client) {
		second := w.client(t, client.Options{Options: invoke.Options{Limiter: c.Limiter()}})
		running, stop := context.WithCancel(ctx)
		require.NoError(t, second.Run(running, func(ctx context.Context) error {
			defer stop() // also where f gives up
			var ways []*tg.Client
			for _, one := range []*client.Client{c, second} {
				pool, err := one.Pool(2)
				if err != nil {
					return err
				}
				defer pool.Close()
				ways = append(ways, one.API(), tg.NewClient(pool))
			}
			w.ResetRecord()
			f(ctx, w, c, ways)
			return nil
		}))
	})
}

func say(ctx context.Context, api *tg.Client, c *client.Client, to *localdc.User) error {
	id, err := c.RandInt64()
	if err != nil {
		return err
	}
	_, err = api.MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: to.InputPeer(), Message: "x", RandomID: id})
	return err
}

func TestNothingIsSentIntoAFloodByAnybodyWhoSharesTheLimiter(t *testing.T) {
	const each = 5
	everywhere(t, func(ctx context.Context, w *world, c *client.Client, ways []*tg.Client) {
		chat := w.AddUser("flooded")
		require.NoError(t, w.Flood(localdc.Scope{Chat: chat.MarkedID()}, 8*time.Second))
		var wg sync.WaitGroup
		for i, way := range ways {
			for range each {
				wg.Go(func() { assert.NoError(t, say(ctx, way, c, chat)) })
			}
			if i == 0 {
				// Those that are on the wire when the flood comes cannot know of it.
				waitsForFlood(t, c, each)
			}
		}
		onTheWire := w.calls(sendMessage)
		waitsForFlood(t, c, each*len(ways))
		require.Equal(t, onTheWire, w.calls(sendMessage))

		release, err := w.Hold(sendMessage)
		require.NoError(t, err)
		w.now.Travel(8 * time.Second)
		eventually(t, func() bool { return w.calls(sendMessage) == onTheWire+1 }, "one goes first")
		waitsForFlood(t, c, each*len(ways)-1)
		require.Equal(t, onTheWire+1, w.calls(sendMessage))
		release()
		require.NoError(t, ended(t, call(func() error { wg.Wait(); return nil })))
		require.Equal(t, onTheWire+each*len(ways), w.calls(sendMessage))
	})
}

func TestFloodOfTheAccountStopsWhatWritesAndNothingThatReads(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world, c *client.Client, ways []*tg.Client) {
		chat, second, third := w.AddUser("first"), w.AddUser("second"), w.AddUser("third")
		require.NoError(t, w.Flood(localdc.Scope{Kind: localdc.Writes}, 8*time.Second))
		ctx = invoke.WithNoWait(ctx)

		// It takes three to see how far it reaches: a chat, another, another method.
		require.Equal(t, flood.Chat, asWait(t, say(ctx, ways[0], c, chat)).Scope)
		require.Equal(t, flood.Method, asWait(t, say(ctx, ways[1], c, second)).Scope)
		require.Equal(t, flood.Account, asWait(t, edit(ctx, c, chat.InputPeer(), 1, "x")).Scope)
		require.Len(t, w.Record().Floods(), 3)

		for _, way := range ways {
			require.Zero(t, asWait(t, say(ctx, way, c, third)).Attempts)
			_, err := way.MessagesDeleteMessages(ctx, &tg.MessagesDeleteMessagesRequest{ID: []int{1}})
			require.Zero(t, asWait(t, err).Attempts)
			_, err = way.MessagesGetHistory(ctx, &tg.MessagesGetHistoryRequest{Peer: chat.InputPeer(), Limit: 1})
			require.NoError(t, err)
		}
		require.Len(t, w.Record().Floods(), 3)
		w.now.Travel(8 * time.Second)
		for _, way := range ways {
			require.NoError(t, say(ctx, way, c, third))
		}
	})
}
