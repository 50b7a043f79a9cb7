package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/localdc"
)

// crashLife is set for a copy of the test binary that is a bot until it is killed: what it has
// to know, as JSON. crashTimes is how often it is restarted: 15 times for each flood if it is
// not set.
const (
	crashLife  = "WEIR_TEST_BOT_UNTIL_KILLED"
	crashTimes = "WEIR_TEST_CRASHES"
)

// life is a bot that tries again and again what is flooded, and says so each time.
type life struct {
	Key            []byte // of the data centre
	Options        []tg.DCOption
	DC             int
	Session, Store string
	Chats          []tg.InputPeerUser // to send to; none to log in only
}

// TestCrashLife is the child of the test below; without one it does nothing.
func TestCrashLife(t *testing.T) {
	text, ok := os.LookupEnv(crashLife)
	if !ok {
		return
	}
	var l life
	require.NoError(t, json.Unmarshal([]byte(text), &l))
	key, err := x509.ParsePKCS1PublicKey(l.Key)
	require.NoError(t, err)

	var p program
	p.env = map[string]string{
		"APP_ID": "12345", "APP_HASH": testHash, "BOT_TOKEN": testToken, "SESSION_FILE": l.Session, "STORE": l.Store,
	}
	cfg, err := config.Load("", p.process().getenv, config.Flags{})
	require.NoError(t, err)
	s, err := runCommand{}.settings(cfg, p.process())
	require.NoError(t, err)
	a := account{settings: s, cfg: cfg, base: telegram.Options{
		PublicKeys: []telegram.PublicKey{{RSA: key}}, DC: l.DC, DCList: dcs.List{Options: l.Options}, Resolver: dcs.Plain(dcs.PlainOptions{}),
	}}
	if len(l.Chats) == 0 {
		_, err := a.run(t.Context())
		say(err)
		return
	}
	a.base.SessionStorage = &client.SessionFile{Path: l.Session}
	b := startBot(t, a)
	say(b.run(t.Context(), testToken, func(ctx context.Context, _ *tg.User) error {
		for {
			for i := range l.Chats {
				say(b.send(ctx, &l.Chats[i], "hello"))
			}
			time.Sleep(time.Millisecond)
		}
	}))
}

// say tells what became of a try, in one write: it is there whole or not at all.
func say(err error) {
	word := "failed"
	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		word = "met" // the flood, by a request
		if wait.Reason == flood.KnownFlood {
			word = "knew"
		}
	}
	_, _ = os.Stdout.WriteString(fmt.Sprintf("%s %v\n", word, err))
}

// lived is what was heard of one life.
type lived struct {
	met, knew int
	first     time.Duration // until the first word
}

// live runs a bot and kills it, as kill -9 does, after so many words or some time.
func (l life) live(t *testing.T, words int, after time.Duration) (r lived) {
	t.Helper()
	text, err := json.Marshal(l)
	require.NoError(t, err)
	child := exec.Command(os.Args[0], "-test.run=^TestCrashLife$")
	child.Env = append(os.Environ(), crashLife+"="+string(text))
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	start := time.Now()
	require.NoError(t, child.Start())
	kill := time.AfterFunc(after, func() { _ = child.Process.Kill() })
	defer kill.Stop()
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		var word string
		_, _ = fmt.Sscan(lines.Text(), &word)
		switch word {
		case "met":
			r.met++
		case "knew":
			r.knew++
		case "failed":
			t.Errorf("the bot could not try: %s", lines.Text())
		default:
			continue // of the testing package
		}
		if n++; n == 1 {
			r.first = time.Since(start)
		}
		if n == words {
			_ = child.Process.Kill()
		}
	}
	_ = child.Wait() // killed, or ended by itself after a login that was refused
	return r
}

// A bot meets a flood, is killed inside it, and is restarted and killed again at moments of
// no choice. The data centre sees nothing of what it tries in all these lives.
func TestKilledAndRestartedInsideAFlood(t *testing.T) {
	restarts := 15
	if n, err := strconv.Atoi(os.Getenv(crashTimes)); err == nil {
		restarts = n
	}
	for _, method := range []string{"auth.importBotAuthorization", "messages.sendMessage"} {
		t.Run(method, func(t *testing.T) {
			cloud, err := localdc.New(localdc.Options{BotToken: testToken})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, cloud.Close()) })
			at, dir := cloud.ClientOptions(), t.TempDir()
			l := life{
				Key: publicKey(at), Options: at.DCList.Options, DC: at.DC,
				Session: filepath.Join(dir, "session.json"), Store: filepath.Join(dir, "store.db"),
			}
			met := 1
			if method == "messages.sendMessage" {
				for _, name := range []string{"alice", "bob", "carol"} {
					l.Chats = append(l.Chats, *cloud.AddUser(name).InputPeer().(*tg.InputPeerUser))
				}
				met = 2 // one chat may be flooded alone; a second tells that it is the method's
			}
			require.NoError(t, cloud.Flood(localdc.Scope{Method: method}, time.Hour))
			calls := func() int { return cloud.Record().Methods[method].Calls }

			first := l.live(t, met, time.Minute)
			require.Equal(t, met, first.met) // it may get a word in that it knows, before it dies
			require.Equal(t, met, calls())

			tries, reached, usual := 0, 0, first.first
			for i := range restarts {
				r := l.live(t, 0, rand.N(2*usual)) // about as often before it can try as after
				require.Zero(t, r.met, "in life %d", i)
				require.Equal(t, met, calls(), "in life %d", i)
				tries += r.knew
				if r.knew > 0 {
					reached, usual = reached+1, min(usual, r.first)
				}
			}
			t.Logf("restarted %d times inside the flood: %d lives came to try it, %d times; the data centre saw none of it", restarts, reached, tries)
			if restarts >= 10 {
				require.NotZero(t, reached, "they tried")
			}
		})
	}
}

// publicKey is the data centre's, in a form that goes to another process.
func publicKey(o telegram.Options) []byte { return x509.MarshalPKCS1PublicKey(o.PublicKeys[0].RSA) }
