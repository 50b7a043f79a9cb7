package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

// overALink runs f with a bot at a data centre with the published limits, on a line that is
// good until f makes it bad.
func overALink(t *testing.T, f func(ctx context.Context, cloud *localdc.Cloud, link *localdc.Link, c *client.Client)) {
	t.Helper()
	link, err := localdc.NewLink(localdc.LinkOptions{Latency: 10 * time.Millisecond, Jitter: 20 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, link.Close()) })
	cloud := newCloud(t, localdc.Options{Limits: localdc.Published(), Link: link})
	c := newClient(t, cloud, client.Options{})
	asBot(t, c, func(ctx context.Context) error {
		f(ctx, cloud, link, c)
		return nil
	})
}

// Callers go on while the line is gone. What they send waits for it, goes at the pace of the
// limits when it is back, and is there once.
func TestAnOutageEndsWithoutFloods(t *testing.T) {
	for name, outage := range map[string]struct{ begin, end func(*localdc.Link) }{
		"the line fails": {(*localdc.Link).Fail, (*localdc.Link).Restore},
		"it is cut":      {func(l *localdc.Link) { l.Cut() }, func(*localdc.Link) {}},
	} {
		t.Run(name, func(t *testing.T) {
			overALink(t, func(ctx context.Context, cloud *localdc.Cloud, link *localdc.Link, c *client.Client) {
				const callers = 100
				var users []*localdc.User
				for i := range callers {
					users = append(users, cloud.AddUser(fmt.Sprint("user ", i)))
				}
				var sent sync.WaitGroup
				for i, user := range users {
					if i == callers/4 {
						time.Sleep(20 * time.Millisecond) // the first are on the wire
						outage.begin(link)
					}
					sent.Go(func() { assert.NoError(t, send(c, ctx, user.InputPeer(), "hello")) })
				}
				time.Sleep(time.Second)
				outage.end(link)
				sent.Wait()
				for _, user := range users {
					assert.Len(t, user.Messages(), 1)
				}
				assert.Empty(t, cloud.Record().Floods())
			})
		})
	}
}

func TestCallsWithoutAConnectionAreRefusedInTime(t *testing.T) {
	overALink(t, func(ctx context.Context, cloud *localdc.Cloud, link *localdc.Link, c *client.Client) {
		alice := cloud.AddUser("alice")
		require.NoError(t, send(c, ctx, alice.InputPeer(), "before"))
		link.Fail()
		require.Eventually(t, func() bool {
			return errors.Is(send(c, invoke.WithNoWait(ctx), alice.InputPeer(), "now or never"), invoke.ErrNoConnection)
		}, 10*time.Second, time.Millisecond, "a call that is not to wait is refused at once")

		late, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		available := c.Available()
		err := send(c, late, alice.InputPeer(), "too late")
		require.ErrorIs(t, err, invoke.ErrNoConnection)
		require.ErrorIs(t, err, invoke.ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "messages.sendMessage not sent: no connection since ")
		for category, tokens := range available {
			require.LessOrEqual(t, tokens, c.Available()[category], "it cost nothing")
		}
		link.Restore()
		require.NoError(t, send(c, ctx, alice.InputPeer(), "after"))
		var texts []string
		for _, m := range alice.Messages() {
			texts = append(texts, m.Message)
		}
		require.Equal(t, []string{"before", "after"}, texts)
	})
}

// A server that acknowledges a call and then loses the connection has done it, most likely.
// The message is there once, and its sender does not see an error.
func TestAcknowledgedMessageWhoseConnectionIsLostIsThereOnce(t *testing.T) {
	overALink(t, func(ctx context.Context, cloud *localdc.Cloud, link *localdc.Link, c *client.Client) {
		alice := cloud.AddUser("alice")
		release, err := cloud.Hold("messages.sendMessage")
		require.NoError(t, err)
		done := call(func() error { return send(c, ctx, alice.InputPeer(), "hello") })
		_, err = cloud.AwaitCall(ctx, func(c localdc.Call) bool { return c.Method == "messages.sendMessage" })
		require.NoError(t, err)
		link.Cut()
		release()
		require.NoError(t, ended(t, done))
		require.Len(t, alice.Messages(), 1)
	})
}
