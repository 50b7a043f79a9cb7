package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// serverKey is made once: it is the slow part of starting a data centre.
var serverKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newCloud(t testing.TB, opts localdc.Options) *localdc.Cloud {
	t.Helper()
	key, err := serverKey()
	require.NoError(t, err)
	opts.Key = key
	cloud, err := localdc.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cloud.Close()) })
	return cloud
}

func newClient(t testing.TB, cloud *localdc.Cloud, opts client.Options) *client.Client {
	t.Helper()
	local := cloud.ClientOptions()
	opts.Telegram.PublicKeys, opts.Telegram.DCList, opts.Telegram.Resolver = local.PublicKeys, local.DCList, local.Resolver
	if opts.Telegram.DC == 0 {
		opts.Telegram.DC = local.DC
	}
	if opts.Telegram.SessionStorage == nil {
		opts.Telegram.SessionStorage = &session.StorageMemory{}
	}
	c, err := client.New(1, "hash", opts)
	require.NoError(t, err)
	return c
}

// asBot logs in and runs f.
func asBot(t testing.TB, c *client.Client, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.Run(ctx, func(ctx context.Context) error {
		if _, err := c.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		return f(ctx)
	}))
}

func send(c *client.Client, ctx context.Context, to tg.InputPeerClass, text string) error {
	id, err := c.RandInt64()
	if err != nil {
		return err
	}
	_, err = c.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: to, Message: text, RandomID: id})
	return err
}

func TestBotOnARealConnection(t *testing.T) {
	cloud := newCloud(t, localdc.Options{Limits: localdc.Published()})
	alice := cloud.AddUser("alice")
	c := newClient(t, cloud, client.Options{})
	asBot(t, c, func(ctx context.Context) error {
		if err := send(c, ctx, alice.InputPeer(), "hello"); err != nil {
			return err
		}
		message, err := alice.Await(ctx, func(m tg.Message) bool { return m.Message == "hello" })
		if err != nil {
			return err
		}
		assert.Equal(t, "hello", message.Message)
		assert.InDelta(t, 29, c.Available()[classify.Message], 1)
		assert.Less(t, c.Congestion(), 1.0)
		return nil
	})
	require.ErrorIs(t, send(c, t.Context(), alice.InputPeer(), "late"), invoke.ErrClosed)
}

func TestLoginThatMovesToAnotherDataCentrePassesTheChokePoint(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	c := newClient(t, cloud, client.Options{Telegram: telegram.Options{
		DC:            4,
		UpdateHandler: tg.NewUpdateDispatcher(),
	}})
	asBot(t, c, func(ctx context.Context) error {
		self, err := c.Self(ctx)
		if err != nil {
			return err
		}
		assert.True(t, self.Bot)
		assert.Equal(t, 2, c.Config().ThisDC)
		return nil
	})
}

func TestFileCrossesDataCentresWholeThroughPools(t *testing.T) {
	cloud := newCloud(t, localdc.Options{Limits: localdc.Limits{Parts: localdc.Rate{PerSecond: 40, Burst: 10}}})
	alice := cloud.AddUser("alice")
	var mu sync.Mutex
	methods := map[string]int{}
	c := newClient(t, cloud, client.Options{Observer: invoke.ObserverFunc(func(e invoke.Event) {
		if e.Kind == invoke.Sent {
			mu.Lock()
			methods[e.Method]++
			mu.Unlock()
		}
	})})
	data := make([]byte, 3<<20+123)
	_, err := rand.Read(data)
	require.NoError(t, err)
	received, err := alice.SendFile("file.bin", data, 4)
	require.NoError(t, err)

	asBot(t, c, func(ctx context.Context) error {
		pool, err := c.Pool(3)
		if err != nil {
			return err
		}
		defer pool.Close()
		file, err := uploader.NewUploader(tg.NewClient(pool)).WithPartSize(64<<10).WithThreads(3).FromBytes(ctx, "file.bin", data)
		if err != nil {
			return fmt.Errorf("upload: %w", err)
		}
		if _, err := c.API().MessagesSendMedia(ctx, &tg.MessagesSendMediaRequest{
			Peer: alice.InputPeer(), RandomID: 1, Media: &tg.InputMediaUploadedDocument{File: file},
		}); err != nil {
			return err
		}

		history, err := c.API().MessagesGetMessages(ctx, []tg.InputMessageClass{&tg.InputMessageID{ID: received}})
		if err != nil {
			return err
		}
		messages := history.(*tg.MessagesMessages).Messages
		document := messages[0].(*tg.Message).Media.(*tg.MessageMediaDocument).Document.(*tg.Document)
		var got bytes.Buffer
		if _, err := c.Download(document.AsInputDocumentFileLocation("")).Stream(ctx, &got); err != nil {
			return fmt.Errorf("download: %w", err)
		}
		assert.True(t, bytes.Equal(data, got.Bytes()), "the file that lies on DC 4 came back whole")
		return nil
	})
	parts := 3<<20/(64<<10) + 1
	require.GreaterOrEqual(t, methods["upload.saveFilePart"], parts, "parts through the pool pass the choke point")
	require.NotEmpty(t, cloud.Record().Floods(), "the server made the parts wait")
}

func TestFloodInAPoolReturnsOnceAndAtOnce(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	c := newClient(t, cloud, client.Options{})
	require.NoError(t, cloud.FailNext("upload.saveFilePart", 420, "FLOOD_WAIT_3600", 100))
	asBot(t, c, func(ctx context.Context) error {
		pool, err := c.DC(ctx, 4, 2)
		if err != nil {
			return err
		}
		defer pool.Close()
		_, err = uploader.NewUploader(tg.NewClient(pool)).WithThreads(1).FromBytes(ctx, "f", make([]byte, 100<<10))
		var wait *flood.WaitError
		if !assert.ErrorAs(t, err, &wait) {
			return err
		}
		assert.Equal(t, 4, wait.DC)
		assert.Equal(t, "upload.saveFilePart", wait.Method)
		assert.Len(t, c.Floods(), 1)
		return nil
	})
	require.Equal(t, 1, cloud.Record().Methods["upload.saveFilePart"].Calls)
}

func TestOverflowingWaitIsALongWait(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	c := newClient(t, cloud, client.Options{})
	require.NoError(t, cloud.FailNext("messages.sendMessage", 420, "FLOOD_WAIT_99999999999999999999", 1))
	asBot(t, c, func(ctx context.Context) error {
		var wait *flood.WaitError
		if assert.ErrorAs(t, send(c, ctx, alice.InputPeer(), "x"), &wait) {
			assert.Equal(t, flood.MaxWait, wait.Wait.Round(time.Hour))
		}
		return nil
	})
}

func TestCancelledRunAnswersEveryWaiter(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	c := newClient(t, cloud, client.Options{
		RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(1)},
		Chats:      invoke.ChatLimits{Mode: invoke.ChatsNever},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	err := c.Run(ctx, func(ctx context.Context) error {
		if _, err := c.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		if err := send(c, ctx, alice.InputPeer(), "the only one"); err != nil {
			return err
		}
		for range 1000 {
			// Their context is not the client's, and f waits for them.
			wg.Go(func() { errs <- send(c, context.Background(), alice.InputPeer(), "never") })
		}
		assert.Eventually(t, func() bool {
			return c.Limiter().Stats()[classify.Message].Waiters == 1000
		}, 30*time.Second, time.Millisecond)
		cancel()
		wg.Wait()
		return nil
	})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	for range 1000 {
		require.ErrorIs(t, <-errs, invoke.ErrClosed)
	}
	require.Len(t, alice.Messages(), 1)
}

func TestConnectionCutWhileCallsWaitAndWhileOneIsAnswered(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	c := newClient(t, cloud, client.Options{
		RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(50).Burst(1)},
		Chats:      invoke.ChatLimits{Mode: invoke.ChatsNever},
	})
	asBot(t, c, func(ctx context.Context) error {
		release, err := cloud.Hold("messages.sendMessage")
		if err != nil {
			return err
		}
		const n = 20
		errs := make(chan error, n)
		for range n {
			go func() { errs <- send(c, ctx, alice.InputPeer(), "x") }()
		}
		assert.Eventually(t, func() bool {
			return cloud.Record().Methods["messages.sendMessage"].Calls > 0
		}, 30*time.Second, time.Millisecond)
		cloud.Cut()
		release()
		for range n {
			// The call on the wire may have been carried out: sent again, its random_id is
			// known, and that is an answer as well.
			if err := <-errs; err != nil && !tgerr.Is(err, "RANDOM_ID_DUPLICATE") {
				return err
			}
		}
		assert.Len(t, alice.Messages(), n)
		return nil
	})
}

func TestTwoClientsShareOneLimiterAndOneCloses(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	shared, err := invoke.NewLimiter(invoke.LimiterOptions{})
	require.NoError(t, err)
	a := newClient(t, cloud, client.Options{Limiter: shared})
	b := newClient(t, cloud, client.Options{Limiter: shared})
	asBot(t, b, func(ctx context.Context) error {
		asBot(t, a, func(ctx context.Context) error { return send(a, ctx, alice.InputPeer(), "from a") })
		return send(b, ctx, alice.InputPeer(), "from b")
	})
	require.Len(t, alice.Messages(), 2)
}

func TestPermitOnTheWire(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	c := newClient(t, cloud, client.Options{
		RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(1)},
	})
	asBot(t, c, func(ctx context.Context) error {
		permit, err := c.TryAcquire(classify.Message)
		if err != nil {
			return err
		}
		defer permit.Return()
		_, err = c.TryAcquire(classify.Message)
		assert.ErrorIs(t, err, ratelimit.ErrRejected)
		if err := send(c, invoke.WithPermit(ctx, permit), alice.InputPeer(), "prepaid"); err != nil {
			return err
		}
		err = send(c, invoke.WithNoWait(ctx), alice.InputPeer(), "not paid")
		assert.ErrorIs(t, err, ratelimit.ErrRejected)
		return nil
	})
}

func TestSessionIsKept(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	path := filepath.Join(t.TempDir(), "bot.session.json")
	open := func() *client.Client {
		return newClient(t, cloud, client.Options{Telegram: telegram.Options{SessionStorage: &client.SessionFile{Path: path}}})
	}
	asBot(t, open(), func(context.Context) error { return nil })
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c := open()
	require.NoError(t, c.Run(t.Context(), func(ctx context.Context) error {
		status, err := c.Auth().Status(ctx)
		assert.True(t, err == nil && status.Authorized, "logged in without a login: %v", err)
		return nil
	}))

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, damaged := range [][]byte{whole[:len(whole)/2], {}, []byte("{}"), []byte("null"), []byte("[1]"), []byte(`{"Version":2,"Data":{}}`), make([]byte, 2<<20)} {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		err = open().Run(t.Context(), func(context.Context) error { return errors.New("must not connect") })
		require.ErrorContains(t, err, path+" is damaged or of another version")
		require.NotContains(t, err.Error(), string(whole[:20]))
	}

	leftovers, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, leftovers, 1)

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: ")

	path = ""
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: path is empty")

	path = filepath.Join(t.TempDir(), "missing", "bot.session.json")
	require.ErrorContains(t, open().Run(t.Context(), func(context.Context) error { return nil }), "session: no file can be made for "+path)
}

func TestChatGatesComeWithTheLoginOfABot(t *testing.T) {
	cloud := newCloud(t, localdc.Options{Limits: localdc.Published()})
	alice, group := cloud.AddUser("alice"), cloud.AddGroup("friends")
	c := newClient(t, cloud, client.Options{
		Chats: invoke.ChatLimits{Group: ratelimit.To(ratelimit.Window{Limit: 3, Period: 2 * time.Second})},
	})
	asBot(t, c, func(ctx context.Context) error {
		start := time.Now()
		for i := range 6 {
			if err := send(c, ctx, group.InputPeer(), fmt.Sprint(i)); err != nil {
				return err
			}
		}
		assert.GreaterOrEqual(t, time.Since(start), 2*time.Second)
		start = time.Now()
		for i := range 5 {
			if err := send(c, ctx, alice.InputPeer(), fmt.Sprint(i)); err != nil {
				return err
			}
		}
		assert.GreaterOrEqual(t, time.Since(start), 1990*time.Millisecond, "a burst of 3, then one a second")
		return nil
	})
	require.Empty(t, cloud.Record().Floods(), "the data centre has the same limit for a chat")
}

func TestClientRunsOnce(t *testing.T) {
	cloud := newCloud(t, localdc.Options{})
	c := newClient(t, cloud, client.Options{})
	asBot(t, c, func(ctx context.Context) error {
		err := c.Run(ctx, func(context.Context) error { return errors.New("must not run") })
		assert.ErrorContains(t, err, "a client runs once")
		return nil
	})
	require.ErrorContains(t, c.Run(t.Context(), func(context.Context) error { return nil }), "a client runs once")
}

func TestBadArgumentsAreNamed(t *testing.T) {
	_, err := client.New(0, "", client.Options{})
	require.ErrorContains(t, err, "app id is 0")
	require.ErrorContains(t, err, "app hash is empty")
	_, err = client.New(1, "0123456789abcdef", client.Options{
		RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(-1)},
	})
	require.ErrorContains(t, err, "message.rate is -1")
	require.NotContains(t, err.Error(), "0123456789abcdef")
}

func TestUpdateLimitsWhileRunning(t *testing.T) {
	c, err := client.New(1, "hash", client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Burst(2)}))
	require.Equal(t, 2.0, c.Available()[classify.Media])
	require.Error(t, c.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Burst(-2)}))
}
