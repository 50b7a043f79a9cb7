package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/localdc"
)

// One Options value for two clients holds one Dispatcher too. The end of the first client
// must not stop the updates of the second.
func TestDispatcherOfTheProgramOutlivesTheFirstOfItsClients(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	got := make(chan struct{}, 10)
	d := dispatch.New(telegram.UpdateHandlerFunc(func(context.Context, tg.UpdatesClass) error {
		got <- struct{}{}
		return nil
	}), dispatch.Options{})
	defer d.Close()
	opts := client.Options{}
	opts.Telegram.UpdateHandler = d
	alice := cloud.AddUser("alice")
	for range 2 {
		asBot(t, newClient(t, cloud, opts), func(ctx context.Context) error {
			alice.Send("hello")
			eventually(t, func() bool { return len(got) > 0 }, "the update is handled")
			<-got
			return nil
		})
		require.Empty(t, got)
	}
}
