package redisstore

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirtg/weir/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Redis server and its clock, which stands still unless it is moved.
type world struct {
	addr    string
	mini    *miniredis.Miniredis // nil on a real server
	client  redis.UniversalClient
	account string
	ahead   time.Duration // how far the clock of the store is ahead of the server's
	time    time.Time     // the server's
}

// everywhere runs a test on miniredis and, when REDIS_ADDR is set, on a real server.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("miniredis", func(t *testing.T) { test(t, mini(t)) })
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		t.Run("server", func(t *testing.T) { test(t, onServer(t, addr)) })
	}
}

func newWorld(t *testing.T, addr string) *world {
	w := &world{addr: addr, time: time.Now().Truncate(time.Microsecond)}
	w.account = fmt.Sprintf("test %s %d", t.Name(), w.time.UnixNano())
	w.account = w.account[max(0, len(w.account)-64):]
	w.client = redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, w.client.Close()) })
	return w
}

func mini(t *testing.T) *world {
	m := miniredis.RunT(t)
	w := newWorld(t, m.Addr())
	w.mini = m
	m.SetTime(w.time)
	m.ClockTTL(true)
	return w
}

// onServer is a real server that other things are on. Its clock cannot be set, so the
// scripts are told another: what a key says. Keys live on by the real clock.
func onServer(t *testing.T, addr string) *world {
	w := newWorld(t, addr)
	w.set(t, w.time)
	t.Cleanup(func() {
		for _, key := range w.keys(t) {
			require.NoError(t, w.client.Del(context.Background(), key).Err())
		}
	})
	return w
}

// another is a world of its own on a server of the same sort.
func (w *world) another(t *testing.T) *world {
	if w.mini != nil {
		return mini(t)
	}
	return onServer(t, w.addr)
}

func (w *world) prefix() string { return "weir:{" + w.account + "}:" }

func (w *world) keys(t *testing.T) (keys []string) {
	t.Helper()
	pattern := strings.NewReplacer("[", `\[`, "]", `\]`, "*", `\*`).Replace(w.prefix()) + "*"
	all := w.client.Scan(context.Background(), 0, pattern, 1000).Iterator()
	for all.Next(context.Background()) {
		keys = append(keys, all.Val())
	}
	require.NoError(t, all.Err())
	return keys
}

// open returns a store, as another process would have it.
func (w *world) open(t *testing.T) *Store {
	t.Helper()
	s, err := New(Options{Client: w.client, Account: w.account, Timeout: 10 * time.Second})
	require.NoError(t, err)
	if w.mini == nil {
		s.scripts = newScripts(strings.NewReplacer(
			"redis.call('TIME')", "redis.call('LRANGE', '"+w.prefix()+"test time', 0, -1)",
			"format('%d', math.max(1, math.ceil(ttl / 1000)))", "'600000'",
		))
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (w *world) set(t *testing.T, at time.Time) {
	w.time = at
	if w.mini != nil {
		w.mini.SetTime(at)
		return
	}
	key := w.prefix() + "test time"
	_, err := w.client.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Del(context.Background(), key)
		p.RPush(context.Background(), key, at.Unix(), at.Nanosecond()/1000)
		p.Expire(context.Background(), key, 10*time.Minute)
		return nil
	})
	require.NoError(t, err)
}

func (w *world) advance(t *testing.T, d time.Duration) { w.set(t, w.time.Add(d)) }

func (w *world) clock(t *testing.T) storetest.Clock {
	return storetest.Clock{
		Now:     func() time.Time { return w.time.Add(w.ahead) },
		Advance: func(d time.Duration) { w.advance(t, d) },
		SetBack: func(d time.Duration) {
			w.ahead += d
			w.advance(t, -d)
		},
	}
}
