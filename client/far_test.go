package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// A bot that uses the published limits to the full over a network that delays every message by
// something else is never flooded, though nothing is forgiven.
func TestNoFloodOverAFarNetwork(t *testing.T) {
	for _, w := range []struct {
		messages, chats int
		least           time.Duration
	}{
		{messages: 60, chats: 4, least: 12 * time.Second},
		{messages: 90, chats: 30, least: 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d messages to %d chats", w.messages, w.chats), func(t *testing.T) {
			t.Parallel()
			link, err := localdc.NewLink(localdc.LinkOptions{Latency: 30 * time.Millisecond, Jitter: 100 * time.Millisecond, Seed: 1})
			require.NoError(t, err)
			defer func() { _ = link.Close() }()
			cloud := newCloud(t, localdc.Options{Limits: localdc.Published(), Link: link})
			peers := make([]tg.InputPeerClass, w.chats)
			for i := range peers {
				peers[i] = cloud.AddUser("reader").Chat.InputPeer()
			}
			c := newClient(t, cloud, client.Options{Options: invoke.Options{
				RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(30).Burst(30)},
			}})
			asBot(t, c, func(ctx context.Context) error {
				start := time.Now()
				var next atomic.Int64
				senders, ctx := errgroup.WithContext(ctx)
				for range 32 {
					senders.Go(func() error {
						for i := int(next.Add(1)); i <= w.messages; i = int(next.Add(1)) {
							_, err := c.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
								Peer: peers[i%w.chats], Message: "hello", RandomID: int64(i),
							})
							if err != nil {
								return err
							}
						}
						return nil
					})
				}
				err := senders.Wait()
				t.Logf("took %v of at least %v, %d floods", time.Since(start).Round(time.Millisecond), w.least, len(cloud.Record().Floods()))
				return err
			})
			require.Empty(t, cloud.Record().Floods())
		})
	}
}
