package localdc_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirtg/weir/localdc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sharedKey saves each test the time of generating one.
var sharedKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newCloud(t *testing.T, opts localdc.Options) *localdc.Cloud {
	t.Helper()
	opts.Key = sharedKey()
	cloud, err := localdc.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cloud.Close()) })
	return cloud
}

// run logs a bot in and runs f with it.
func run(t *testing.T, cloud *localdc.Cloud, change func(*telegram.Options), f func(context.Context, *telegram.Client)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	opts := cloud.ClientOptions()
	if change != nil {
		change(&opts)
	}
	client := telegram.NewClient(1, "hash", opts)
	require.NoError(t, client.Run(ctx, func(ctx context.Context) error {
		_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		f(ctx, client)
		return nil
	}))
}

func TestBotLogsInAndSends(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	run(t, cloud, nil, func(ctx context.Context, client *telegram.Client) {
		self, err := client.Self(ctx)
		require.NoError(t, err)
		require.True(t, self.Bot)
		_, err = message.NewSender(client.API()).To(alice.InputPeer()).Text(ctx, "hello")
		require.NoError(t, err)
		m, err := alice.Await(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "hello", m.Message)
		_, err = client.API().ContactsResolvePhone(ctx, "1")
		require.Error(t, err)
		_, err = client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: 5}, Message: "x", RandomID: 1})
		require.True(t, tg.IsPeerIDInvalid(err))
	})
}
