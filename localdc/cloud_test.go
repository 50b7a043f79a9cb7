package localdc_test

import (
	"context"
	"math"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
	"github.com/gotd/td/transport"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/weirtg/weir/localdc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCloud(t *testing.T, opts localdc.Options) *localdc.Cloud {
	t.Helper()
	cloud, err := localdc.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cloud.Close()) })
	return cloud
}

// connect runs f with a client, not logged in.
func connect(t *testing.T, cloud *localdc.Cloud, change func(*telegram.Options), f func(context.Context, *telegram.Client)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	opts := cloud.ClientOptions()
	opts.MigrationTimeout = time.Minute // a key exchange takes its time on a busy machine
	if change != nil {
		change(&opts)
	}
	client := telegram.NewClient(1, "hash", opts)
	done := false
	err := client.Run(ctx, func(ctx context.Context) error {
		defer cancel() // a test that gives up in f ends the client too
		f(ctx, client)
		done = true
		return nil
	})
	if !done {
		require.NoError(t, err)
	}
}

// login runs f with a client that is logged in as the bot.
func login(t *testing.T, cloud *localdc.Cloud, f func(context.Context, *telegram.Client)) {
	t.Helper()
	connect(t, cloud, nil, func(ctx context.Context, client *telegram.Client) {
		_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		f(ctx, client)
	})
}

func send(ctx context.Context, client *telegram.Client, chat *localdc.Chat, text string, randomID int64) error {
	_, err := client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
		Peer: chat.InputPeer(), Message: text, RandomID: randomID,
	})
	return err
}

// requireRPC tells whether err is this RPC error, to the letter.
func requireRPC(t *testing.T, err error, code int, message string) {
	t.Helper()
	rpc, ok := tgerr.As(err)
	require.True(t, ok, "want %s, got %v", message, err)
	require.Equal(t, strconv.Itoa(code)+" "+message, strconv.Itoa(rpc.Code)+" "+rpc.Message)
}

func TestBotLogsIn(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	storage := &session.StorageMemory{}
	keep := func(o *telegram.Options) { o.SessionStorage = storage }
	connect(t, cloud, keep, func(ctx context.Context, client *telegram.Client) {
		_, err := client.Self(ctx)
		requireRPC(t, err, 401, "AUTH_KEY_UNREGISTERED")
		_, err = client.Auth().Bot(ctx, "1000:wrong")
		requireRPC(t, err, 400, "ACCESS_TOKEN_INVALID")

		_, err = client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		self, err := client.Self(ctx)
		require.NoError(t, err)
		require.True(t, self.Bot)
		require.EqualValues(t, 1000, self.ID)

		near, err := client.API().HelpGetNearestDC(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, near.NearestDC)
		_, err = client.API().HelpGetCDNConfig(ctx)
		require.NoError(t, err)
	})
	// The login outlives the connection, until it is ended.
	connect(t, cloud, keep, func(ctx context.Context, client *telegram.Client) {
		_, err := client.Self(ctx)
		require.NoError(t, err)
		_, err = client.API().AuthLogOut(ctx)
		require.NoError(t, err)
		_, err = client.Self(ctx)
		requireRPC(t, err, 401, "AUTH_KEY_UNREGISTERED")
	})
}

func TestAccountOfAPerson(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{Person: true})
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		self, err := client.Self(ctx)
		require.NoError(t, err)
		require.False(t, self.Bot)
		require.NoError(t, send(ctx, client, cloud.AddUser("alice").Chat, "hi", 1))
	})
}

func TestLoginAtAnotherDataCentreMigratesHome(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{DCs: []int{2, 4}, Home: 2})
	alice := cloud.AddUser("alice")
	connect(t, cloud, func(o *telegram.Options) { o.DC = 4 }, func(ctx context.Context, client *telegram.Client) {
		_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		require.NoError(t, send(ctx, client, alice.Chat, "from home", 1))
	})
	var logins []localdc.Call
	for _, c := range cloud.Record().Calls {
		if c.Method == "auth.importBotAuthorization" {
			logins = append(logins, c)
		}
	}
	require.Len(t, logins, 2)
	require.Equal(t, 4, logins[0].DC)
	require.Equal(t, "USER_MIGRATE_2", logins[0].Error)
	require.Equal(t, 2, logins[1].DC)
	require.Empty(t, logins[1].Error)
}

func TestConnectionsThatAreCutAndAnswersThatAreHeld(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	bob := cloud.AddUser("bob")
	carol := cloud.AddUser("carol")
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		for i := range int64(3) { // the client comes back each time
			require.Equal(t, 1, cloud.Cut())
			// A call made before the client notices may fail: it is for its
			// caller to repeat.
			for send(ctx, client, alice.Chat, "again", i) != nil {
				require.NoError(t, ctx.Err())
			}
		}
		require.Len(t, alice.Messages(), 3)

		release, err := cloud.Hold("messages.sendMessage")
		require.NoError(t, err)
		var g errgroup.Group
		for i := range int64(5) {
			g.Go(func() error { return send(ctx, client, bob.Chat, "held", 10+i) })
		}
		for range 5 {
			_, err := bob.Await(ctx, nil)
			require.NoError(t, err, "messages are there before their answers")
		}
		_, err = client.Self(ctx)
		require.NoError(t, err, "other calls go on")
		release()
		require.NoError(t, g.Wait())

		release, err = cloud.Hold("messages.sendMessage")
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- send(ctx, client, carol.Chat, "held", 20) }()
		_, err = cloud.AwaitCall(ctx, func(c localdc.Call) bool { return c.Chat == carol.MarkedID() })
		require.NoError(t, err)
		cloud.Cut()
		release()
		release() // once more does nothing
		// The answer is lost. The client reports that, or asks again with the
		// same random id.
		require.Error(t, <-done)
		require.Len(t, carol.Messages(), 1)
	})
}

func TestManyClientsConnectAtOnce(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	// Strangers that hang up at once, or say nothing, keep nobody out.
	for _, option := range cloud.ClientOptions().DCList.Options {
		raw, err := net.Dial("tcp", net.JoinHostPort(option.IPAddress, strconv.Itoa(option.Port)))
		require.NoError(t, err)
		if option.MediaOnly {
			defer func() { require.NoError(t, raw.Close()) }()
		} else {
			require.NoError(t, raw.Close())
		}
	}
	var g errgroup.Group
	// Every transport that gotd speaks is understood.
	for i, protocol := range []dcs.Protocol{transport.Abridged, transport.PaddedIntermediate, transport.Full} {
		speak := func(o *telegram.Options) { o.Resolver = dcs.Plain(dcs.PlainOptions{Protocol: protocol}) }
		g.Go(func() error {
			connect(t, cloud, speak, func(ctx context.Context, client *telegram.Client) {
				_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
				require.NoError(t, err)
				for k := range 20 {
					require.NoError(t, send(ctx, client, alice.Chat, "hi", int64(100*i+k)))
				}
			})
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, alice.Messages(), 60)
	require.Equal(t, 60, cloud.Record().Methods["messages.sendMessage"].Messages)
}

func TestOptionsAreChecked(t *testing.T) {
	for want, opts := range map[string]localdc.Options{
		"DCs is [2 2]":                             {DCs: []int{2, 2}},
		"DCs is [0]":                               {DCs: []int{0}},
		"Home is 5: want one of DCs [2 4]":         {Home: 5},
		"BotToken is malformed":                    {BotToken: "secret"},
		"Limits.Account.PerSecond is -1":           {Limits: localdc.Limits{Account: localdc.Rate{PerSecond: -1, Burst: 1}}},
		"Limits.Chat.Burst is 0":                   {Limits: localdc.Limits{Chat: localdc.Rate{PerSecond: 1}}},
		"Limits.Slack is -1ns":                     {Limits: localdc.Limits{Slack: -1}},
		"Limits.Group.Period is 0s":                {Limits: localdc.Limits{Group: localdc.Window{Limit: 1}}},
		"Limits.Parts takes more than a year":      {Limits: localdc.Limits{Parts: localdc.Rate{PerSecond: 1e-9, Burst: 1}}},
		`Limits.Methods names "messages.message"`:  {Limits: localdc.Limits{Methods: map[string]localdc.Rate{"messages.message": {}}}},
		`Limits.Methods names "message"`:           {Limits: localdc.Limits{Methods: map[string]localdc.Rate{"message": {}}}},
		"CDN is 2: want 0 or an id that is none":   {CDN: 2},
		"Limits.Reads.Burst is -1":                 {Limits: localdc.Limits{Reads: localdc.Rate{PerSecond: 1, Burst: -1}}},
		"Limits.Writes.PerSecond is NaN":           {Limits: localdc.Limits{Writes: localdc.Rate{PerSecond: math.NaN(), Burst: 1}}},
		`Limits.ChatMethods names "x"`:             {Limits: localdc.Limits{ChatMethods: map[string]localdc.Rate{"x": {}}}},
		`Limits.Methods["help.getConfig"].PerSeco`: {Limits: localdc.Limits{Methods: map[string]localdc.Rate{"help.getConfig": {Burst: 1}}}},
	} {
		_, err := localdc.New(opts)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret:", "no token in an error")
	}

	cloud := newCloud(t, localdc.Options{})
	require.ErrorContains(t, cloud.FailNext("messages.send", 420, "FLOOD_WAIT_1", 1), `"messages.send" is not the TL name`)
	require.ErrorContains(t, cloud.FailNext("help.getConfig", 420, "FLOOD_WAIT_1", 0), "times is 0")
	for want, scope := range map[string]localdc.Scope{
		`"x" is not the TL name`: {Method: "x"},
		"Scope.Chat is 5":        {Chat: 5},
		"Scope.DC is 3":          {DC: 3},
		"Scope.Kind is 5":        {Kind: 5},
	} {
		require.ErrorContains(t, cloud.Flood(scope, time.Second), want)
		_, err := cloud.Fail(scope, 400, "PEER_FLOOD", 1)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, cloud.Flood(localdc.Scope{}, -1), "Flood of everything is -1ns: want 0 to a year")
	require.ErrorContains(t, cloud.AddUser("l").SetLimit(localdc.Rate{PerSecond: 1}), "SetLimit.Burst is 0")
	require.ErrorContains(t, cloud.AddUser("w").SetWindow(localdc.Window{Limit: 1}), "SetWindow.Period is 0s")
	require.ErrorContains(t, cloud.Delay("help.getConfig", -1), "Delay is -1ns")
	_, err := cloud.Hold("x")
	require.ErrorContains(t, err, `"x" is not`)
	require.ErrorContains(t, cloud.SetLimits(localdc.Limits{Account: localdc.Rate{Burst: 1}}), "PerSecond is 0")
	require.ErrorContains(t, cloud.AddGroup("g").SetSlowMode(7*time.Second), "want 0, 5, 10")
	require.ErrorContains(t, cloud.AddUser("u").SetSlowMode(5*time.Second), "supergroups")
}

func TestCloseEndsWaits(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	done := make(chan error, 1)
	go func() {
		_, err := alice.Await(context.Background(), nil)
		done <- err
	}()
	require.NoError(t, cloud.Close())
	require.ErrorIs(t, <-done, localdc.ErrClosed)
	_, err := cloud.AwaitCall(context.Background(), func(localdc.Call) bool { return true })
	require.ErrorIs(t, err, localdc.ErrClosed)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = newCloud(t, localdc.Options{}).AddUser("bob").Await(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `await a message in "bob"`)
}
