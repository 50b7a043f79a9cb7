package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gotd/td/session"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

const (
	testToken = "1000:a-secret-that-nobody-may-read"
	testHash  = "0123456789abcdef0123456789abcdef"
)

// newAccount is an account on a data centre of the test's, with a session file.
func newAccount(t *testing.T, p *program, flags runCommand) (account, *localdc.Cloud) {
	t.Helper()
	cloud, err := localdc.New(localdc.Options{BotToken: testToken, Limits: localdc.Published()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cloud.Close()) })

	p.env = map[string]string{
		"APP_ID": "12345", "APP_HASH": testHash, "BOT_TOKEN": testToken,
		"SESSION_FILE": filepath.Join(t.TempDir(), "session.json"),
		"STORE":        filepath.Join(t.TempDir(), "store.db"),
	}
	cfg, err := config.Load("", p.process().getenv, config.Flags{HTTP: string(flags.HTTP), LogLevel: string(flags.LogLevel)})
	require.NoError(t, err)
	s, err := flags.settings(cfg, p.process())
	require.NoError(t, err)
	return account{settings: s, cfg: cfg, base: cloud.ClientOptions()}, cloud
}

// startBot is the bot of an account for a test that runs it by itself.
func startBot(t *testing.T, a account) *bot {
	t.Helper()
	b, stop, err := a.start(t.Context(), a.cfg, a.base)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return b
}

// online runs f while the bot is, and then ends it as Ctrl-C does.
func online(t *testing.T, p *program, a account, f func(context.Context)) accountReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	up := make(chan struct{})
	p.stdout.on("is online", func() { close(up) })
	type ended struct {
		result report
		err    error
	}
	end := make(chan ended, 1)
	go func() {
		result, err := a.run(ctx)
		end <- ended{result, err}
	}()
	select {
	case <-up:
		f(ctx)
	case e := <-end:
		require.Fail(t, "the bot did not get online", "%v\n%s", e.err, &p.stderr)
	}
	cancel()
	e := <-end
	require.NoError(t, e.err)
	return e.result.(accountReport)
}

func requirePrivate(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

func ask(ctx context.Context, t *testing.T, u *localdc.User, text string) string {
	t.Helper()
	u.Send(text)
	m, err := u.Await(ctx, func(m tg.Message) bool { return m.Out })
	require.NoError(t, err)
	return m.Message
}

func logins(c *localdc.Cloud) int { return c.Record().Methods["auth.importBotAuthorization"].Calls }

func TestBotAnswers(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	alice := cloud.AddUser("alice")
	group := cloud.AddGroup("a group")
	result := online(t, &p, a, func(ctx context.Context) {
		require.Contains(t, ask(ctx, t, alice, "/start"), "Hello!")
		require.Equal(t, "hello, bot", ask(ctx, t, alice, "hello, bot"))
		limits := ask(ctx, t, alice, "/limits")
		for _, want := range []string{"message: ", "(20/s burst 30)", "global: "} {
			require.Contains(t, limits, want)
		}
		// A group is answered commands only.
		for _, text := range []string{"hello, all", "/ping@local_bot"} {
			_, err := alice.SendTo(group, text)
			require.NoError(t, err)
		}
		m, err := group.Await(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "pong", m.Message)
	})
	// The end may come between an answer and the word that it is there.
	require.EqualValues(t, 4, result.Answered+result.Unanswered)
	require.GreaterOrEqual(t, result.Answered, int64(2))

	var text output
	result.text(&text)
	require.Contains(t, text.String(), "messages in")
	require.NoError(t, runCommand{JSON: true}.print(p.process(), result))
}

func TestAwardsAreLimitedByWhoGivesAndByWhoGetsThem(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	a.limits.Chats.Mode = invoke.ChatsNever
	require.NoError(t, cloud.SetLimits(localdc.Limits{}))
	people := make([]*localdc.User, 4)
	for i := range people {
		people[i] = cloud.AddUser("member")
	}
	group := cloud.AddGroup("a group")
	inGroup := func(ctx context.Context, u *localdc.User, text string) string {
		_, err := u.SendTo(group, text)
		require.NoError(t, err)
		m, err := group.Await(ctx, func(m tg.Message) bool { return m.Out })
		require.NoError(t, err)
		return m.Message
	}
	online(t, &p, a, func(ctx context.Context) {
		require.Contains(t, inGroup(ctx, people[0], "/award"), "Write /award and a name")
		require.Equal(t, "bob gets an award. 2 more today.", inGroup(ctx, people[0], "/award @Bob"))
		require.Contains(t, inGroup(ctx, people[0], "/award carol"), "You gave one just now")
		require.Equal(t, "bob gets an award. 1 more today.", inGroup(ctx, people[1], "/award bob"))
	})
	online(t, &p, a, func(ctx context.Context) { // a restart forgets nothing
		require.Equal(t, "bob gets an award. 0 more today.", inGroup(ctx, people[2], "/award bob"))
		require.Contains(t, inGroup(ctx, people[3], "/award bob"), "bob has had three awards today")
		require.Equal(t, "carol gets an award. 2 more today.", inGroup(ctx, people[3], "/award carol"), "what was not given costs nothing")
		require.Equal(t, "bob can get 0 more awards today.", inGroup(ctx, people[0], "/awards bob"))
	})
	requirePrivate(t, a.cfg.StoreFile)
}

func TestSessionIsKept(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	alice := cloud.AddUser("alice")
	for range 2 {
		online(t, &p, a, func(ctx context.Context) {
			require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
		})
	}
	require.Equal(t, 1, logins(cloud), "each login is itself limited")

	requirePrivate(t, a.cfg.SessionFile)
}

// Nothing is sent with a session that cannot be used: a login would be spent on it.
func TestSessionThatCannotBeUsed(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	online(t, &p, a, func(context.Context) {})
	whole, err := os.ReadFile(a.cfg.SessionFile)
	require.NoError(t, err)
	cloud.ResetRecord()

	require.NoError(t, os.WriteFile(a.cfg.SessionFile, whole[:len(whole)/2], 0o600))
	_, err = a.run(t.Context())
	require.ErrorContains(t, err, a.cfg.SessionFile)
	require.ErrorContains(t, err, "damaged")

	a.cfg.SessionFile = t.TempDir()
	_, err = a.run(t.Context())
	require.ErrorContains(t, err, "is a directory")

	a.cfg.SessionFile = filepath.Join(t.TempDir(), "missing", "session.json")
	_, err = a.run(t.Context())
	require.ErrorContains(t, err, "no file can be made for "+a.cfg.SessionFile)
	require.Zero(t, logins(cloud))
}

func TestRefusedLoginsAreExplained(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	for i, test := range []struct {
		code    int
		message string
		want    []string
	}{
		{420, "FLOOD_WAIT_2700", []string{"45m0s to pass", "keep its session file"}},
		{400, "ACCESS_TOKEN_INVALID", []string{"@BotFather"}},
		{400, "API_ID_INVALID", []string{"my.telegram.org"}},
		{500, "INTERNAL", []string{"log in", "INTERNAL"}},
	} {
		a.cfg.StoreFile = filepath.Join(t.TempDir(), "store.db") // the wait would be remembered
		require.NoError(t, cloud.FailNext("auth.importBotAuthorization", test.code, test.message, 1))
		_, err := a.run(t.Context())
		for _, want := range test.want {
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, i+1, logins(cloud), "it is not tried again")
	}
}

func TestRefusedLoginIsNotTriedAgainByTheNextStart(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	require.NoError(t, cloud.FailNext("auth.importBotAuthorization", 420, "FLOOD_WAIT_2700", 1))
	for range 3 {
		_, err := a.run(t.Context())
		require.ErrorContains(t, err, "to pass before this bot logs in again")
	}
	require.Equal(t, 1, logins(cloud))
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestMetricsAndHealth(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{HTTP: "127.0.0.1:0"})
	release, err := cloud.Hold("auth.importBotAuthorization")
	require.NoError(t, err)

	var base string
	p.stdout.on("/metrics\n", func() {
		// It serves before it is logged in, and says so.
		base = regexp.MustCompile(`http://[0-9.:]+`).FindString(p.stdout.text.String())
		go func() {
			defer release()
			status, _ := get(t, base+"/healthz")
			require.Equal(t, http.StatusServiceUnavailable, status)
		}()
	})
	alice := cloud.AddUser("alice")
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
		status, body := get(t, base+"/healthz")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "ok\n", body)

		// A person has the answer before the bot has the word that it is there.
		require.Eventually(t, func() bool {
			status, body = get(t, base+"/metrics")
			return status == http.StatusOK &&
				strings.Contains(body, `weir_requests_total{category="message",client="examplebot",method="messages.sendMessage",result="ok"} 1`)
		}, 10*time.Second, time.Millisecond)
		require.Contains(t, body, `weir_bucket_rate{bucket="global",client="examplebot"} 30`)
		require.NotContains(t, body, testToken)

		status, _ = get(t, base+"/")
		require.Equal(t, http.StatusNotFound, status)
	})
	_, err = http.Get(base + "/healthz")
	require.ErrorContains(t, err, "refused", "nobody serves any more")
}

// A connection that breaks loses neither questions nor answers, and repeats none.
func TestBrokenConnections(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	alice := cloud.AddUser("alice")
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
		require.Equal(t, 1, cloud.Cut())
		alice.Send("while nobody listens")
		m, err := alice.Await(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "while nobody listens", m.Message)

		release, err := cloud.Hold("messages.sendMessage")
		require.NoError(t, err)
		require.Equal(t, "cut in the middle", ask(ctx, t, alice, "cut in the middle"), "it is there before the answer to the call")
		cloud.Cut()
		release()
		require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
	})
	answers := 0
	for _, m := range alice.Messages() {
		if m.Out {
			answers++
		}
	}
	require.Equal(t, 4, answers)
}

func TestBroadcastSurvivesBrokenConnections(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	b := startBot(t, a)
	var chats []*localdc.Chat
	var peers []tg.InputPeerClass
	for range 20 {
		chat := cloud.AddUser("reader").Chat
		chats, peers = append(chats, chat), append(peers, chat.InputPeer())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, b.run(ctx, testToken, func(ctx context.Context, _ *tg.User) error {
		var n atomic.Int64
		news := &broadcast{bot: b, chats: peers, each: 2, step: func() {
			if n.Add(1)%10 == 0 {
				cloud.Cut()
			}
		}}
		return news.run(ctx)
	}))
	for _, chat := range chats {
		require.Len(t, chat.Messages(), 2, "each message once")
	}
	require.Empty(t, cloud.Record().Floods())
}

// Somebody who asks in a chat that is full of news does not wait for all of it.
func TestAnswersGoBeforeTheBroadcastInTheirChat(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	a.limits.Chats.Private = ratelimit.Rate(2).Burst(1)
	b := startBot(t, a)
	chat := cloud.AddUser("alice").Chat
	peer := chat.InputPeer()
	require.NoError(t, b.run(t.Context(), testToken, func(ctx context.Context, _ *tg.User) error {
		news := &broadcast{bot: b, chats: []tg.InputPeerClass{peer}, each: broadcastWorkers, step: func() {}}
		var sent errgroup.Group
		sent.Go(func() error { return news.run(ctx) })
		require.Eventually(t, func() bool {
			return b.client.Limiter().GateStats()[invoke.PrivateGate].Waiters > 1
		}, 10*time.Second, time.Millisecond)
		require.NoError(t, b.send(ctx, peer, "answer"))
		return sent.Wait()
	}))
	messages := chat.Messages()
	require.Len(t, messages, broadcastWorkers+1)
	require.Contains(t, messages[len(messages)-1].Message, "News")
}

// A flood is told of in the chats that it leaves alone.
func TestLimitsTellOfFloods(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	b := startBot(t, a)
	require.NoError(t, cloud.FailNext("messages.sendMessage", 420, "FLOOD_WAIT_3600", 1))
	require.NoError(t, b.run(t.Context(), testToken, func(ctx context.Context, _ *tg.User) error {
		require.NotContains(t, b.limits(), "Floods")
		require.ErrorIs(t, b.send(ctx, cloud.AddUser("alice").Chat.InputPeer(), "hello"), flood.ErrGivenUp)
		require.Regexp(t, `\nFloods that stand: 1, the last until \d\d:\d\d:\d\d UTC\.$`, b.limits())
		return nil
	}))
}

// What the limiter refuses is not sent again as if the connection had broken.
func TestFullQueueIsNoBrokenConnection(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	a.limits.Chats.Private = ratelimit.Rate(0.001).Burst(1)
	a.limits.MaxWaiters = 1
	b := startBot(t, a)
	require.NoError(t, b.run(t.Context(), testToken, func(ctx context.Context, _ *tg.User) error {
		alice := cloud.AddUser("alice").Chat.InputPeer()
		require.NoError(t, b.send(ctx, alice, "what the chat takes"))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		refused := make(chan error, 2)
		for range 2 { // one waits, the other finds it waiting
			go func() { refused <- b.send(ctx, alice, "too much") }()
		}
		require.ErrorIs(t, <-refused, ratelimit.ErrQueueFull)
		cancel()
		require.ErrorIs(t, <-refused, context.Canceled)
		return nil
	}))
	require.NotContains(t, p.stderr.String(), "The connection broke")
}

// Nothing that a program writes, however much it logs, holds a secret.
func TestNoSecretIsPrinted(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{LogLevel: "debug"})
	alice := cloud.AddUser("alice")
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
	})
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
	})
	data, err := (&session.Loader{Storage: &session.FileStorage{Path: a.cfg.SessionFile}}).Load(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, data.AuthKey)
	require.NoError(t, os.Remove(a.cfg.SessionFile))
	require.NoError(t, cloud.FailNext("auth.importBotAuthorization", 400, "ACCESS_TOKEN_INVALID", 1))
	_, err = a.run(t.Context())
	require.Error(t, err)
	p.process().fail(err)

	written := p.stdout.String() + p.stderr.String()
	require.Greater(t, len(written), 100, "it did log")
	require.NotContains(t, written, testHash)
	require.NotContains(t, written, testToken)
	require.NotContains(t, written, strings.TrimPrefix(testToken, "1000:"))
	require.NotContains(t, written, base64.StdEncoding.EncodeToString(data.AuthKey))
	require.NotContains(t, written, hex.EncodeToString(data.AuthKey))
}
