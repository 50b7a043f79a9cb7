package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// redisURL is a real server when REDIS_ADDR names one.
func redisURL(t *testing.T) config.Secret {
	t.Helper()
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		return config.NewSecret("redis://" + addr)
	}
	return config.NewSecret("redis://" + miniredis.RunT(t).Addr())
}

// onRedis is an account whose store is a Redis server, under a name of the test's own.
func onRedis(t *testing.T, p *program) (account, *localdc.Cloud) {
	t.Helper()
	a, cloud := newAccount(t, p, runCommand{})
	a.cfg.StoreFile, a.cfg.RedisURL = "", redisURL(t)
	a.cfg.Account = fmt.Sprintf("test-%d", time.Now().UnixNano())
	return a, cloud
}

func TestAwardsOnRedisAreThereAfterARestart(t *testing.T) {
	var p program
	a, cloud := onRedis(t, &p)
	alice := cloud.AddUser("alice")
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "bob gets an award. 2 more today.", ask(ctx, t, alice, "/award bob"))
	})
	online(t, &p, a, func(ctx context.Context) {
		require.Equal(t, "bob can get 2 more awards today.", ask(ctx, t, alice, "/awards bob"))
	})
}

// The data centre is the judge: four bots on one account, none of which could keep to its
// limit without the others.
func TestProcessesOnRedisKeepToOneLimitTogether(t *testing.T) {
	var p program
	a, cloud := onRedis(t, &p)
	require.NoError(t, cloud.SetLimits(localdc.Limits{
		// On a busy machine messages are late by much, and arrive together. Without each
		// other the four would have four times the burst.
		Account: localdc.Rate{PerSecond: 30, Burst: 30}, Slack: 500 * time.Millisecond,
	}))
	a.limits.RateLimits = map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(30).Burst(30)}
	peers := make([]tg.InputPeerClass, 100)
	for i := range peers {
		peers[i] = cloud.AddUser("reader").Chat.InputPeer()
	}
	const processes, messages = 4, 150
	var next, failed atomic.Int64
	sent := make([]atomic.Int64, processes)
	ready := make(chan struct{})
	var online, all sync.WaitGroup
	online.Add(processes)
	for i := range processes {
		b := startBot(t, a)
		all.Go(func() {
			err := b.run(t.Context(), testToken, func(ctx context.Context, _ *tg.User) error {
				online.Done()
				<-ready
				var workers sync.WaitGroup
				for range 8 {
					workers.Go(func() {
						for n := next.Add(1); n <= messages; n = next.Add(1) {
							if err := b.send(ctx, peers[n%int64(len(peers))], "news"); err != nil {
								failed.Add(1)
							}
							sent[i].Add(1)
						}
					})
				}
				workers.Wait()
				return nil
			})
			if err != nil {
				failed.Add(1)
			}
		})
	}
	online.Wait()
	start := time.Now()
	close(ready)
	all.Wait()
	took := time.Since(start)
	require.Zero(t, failed.Load())
	require.Empty(t, cloud.Record().Floods(), "the data centre saw more than its limit")
	require.GreaterOrEqual(t, took, 3900*time.Millisecond, "120 messages beyond the burst, at 30 a second")
	for i := range sent {
		require.Greater(t, sent[i].Load(), int64(messages/processes/2), "process %d was starved", i)
	}
}

// A bot that is to go on without Redis also starts without it, and joins when it comes.
func TestBotStartsWhileRedisIsAway(t *testing.T) {
	for policy, meanwhile := range map[string]string{
		"": "keeps to the limits by itself", "open": "go out without limits", // local, unless it is given
	} {
		t.Run(policy, func(t *testing.T) {
			var p program
			a, cloud := newAccount(t, &p, runCommand{})
			alice := cloud.AddUser("alice")
			server := miniredis.NewMiniRedis()
			require.NoError(t, server.Start())
			defer func() { server.Close() }()
			addr := server.Addr()
			a.cfg.StoreFile, a.cfg.RedisURL = "", config.NewSecret("redis://"+addr)
			a.cfg.Account, a.cfg.OnStoreFailure = "away", policy
			server.Close()

			back := make(chan struct{})
			p.stderr.on("The store is back", func() { close(back) })
			online(t, &p, a, func(ctx context.Context) {
				require.Contains(t, ask(ctx, t, alice, "/award bob"), "bob gets an award.")
				require.Contains(t, p.stderr.String(), "The store is away: ")
				require.Contains(t, p.stderr.String(), meanwhile)
				require.Contains(t, p.stderr.String(), addr)

				require.NoError(t, server.Restart())
				for joined := false; !joined; { // whether it is back, calls ask
					require.Equal(t, "pong", ask(ctx, t, alice, "/ping"))
					select {
					case <-back:
						joined = server.Exists("weir:{away}:gate:0:message")
					case <-time.After(200 * time.Millisecond):
					}
				}
				require.Equal(t, "carol gets an award. 2 more today.", ask(ctx, t, alice, "/award carol"))
			})
			require.Equal(t, 1, strings.Count(p.stderr.String(), "The store is away"), "once")
		})
	}
}

// Nothing is to go on without Redis: the bot says so, and how it would.
func TestBotDoesNotStartWhileRedisIsAwayUnderClosed(t *testing.T) {
	var p program
	a, cloud := newAccount(t, &p, runCommand{})
	a.cfg.StoreFile, a.cfg.RedisURL = "", config.NewSecret("redis://:secret-password@127.0.0.1:1/0")
	a.cfg.OnStoreFailure = "closed"
	_, err := a.run(t.Context())
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "127.0.0.1:1: connect: connection refused: start the server, or set on_store_failure to local or open")
	require.NotContains(t, err.Error(), "secret-password")
	require.Empty(t, cloud.Record().Methods)
}

// Libraries that write to stderr by themselves would write between the lines of its log.
func TestOutputOfTheProgramIsItsOwn(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), asProgram+"=1", "STORE=redis://127.0.0.1:1/0")
	stderr, err := program.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	defer func() { _ = program.Process.Kill() }()
	said := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}\t`, lines.Text())
		if strings.Contains(lines.Text(), "The store is away") && !said {
			said = true
			require.NoError(t, program.Process.Signal(os.Interrupt))
		}
	}
	require.True(t, said)
	require.ErrorContains(t, program.Wait(), fmt.Sprint("exit status ", exitInterrupted))
}

func TestURLOfRedisThatCannotBeReadIsAMistakeInTheConfiguration(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1/first", "redis://[::1"} {
		var p program
		p.env = map[string]string{
			"APP_ID": "12345", "APP_HASH": testHash, "BOT_TOKEN": testToken, "STORE": url,
			"SESSION_FILE": filepath.Join(t.TempDir(), "session.json"),
		}
		require.Equal(t, exitUsage, p.run(t), &p.stderr)
		require.Contains(t, p.stderr.String(), "want redis://user:password@host:6379/0")
	}
}
