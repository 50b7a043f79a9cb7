package redisstore

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

const secret = "hunter2"

// requests are one of each kind.
func requests() (all []quota.Request) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 3, Period: time.Hour, Kind: kind}
		all = append(all, quota.Request{Key: "k", Window: w, Cost: 1, Record: true})
	}
	return all
}

// calls are all that go to the server, by what their errors say was being done.
func calls(s *Store) map[string]func(context.Context) error {
	taken := []ratelimit.Charge{charge("g", perSecond(1, 10), 1)}
	return map[string]func(context.Context) error{
		"decide": func(ctx context.Context) error {
			_, err := s.Decide(ctx, requests()[0])
			return err
		},
		"reset": func(ctx context.Context) error { return s.Reset(ctx, "k") },
		"load facts": func(ctx context.Context) error {
			_, err := s.Load(ctx)
			return err
		},
		"save facts": func(ctx context.Context) error {
			return s.Save(ctx, store.Fact{Key: "k", Value: []byte("v"), Until: time.Now().Add(time.Hour)})
		},
		"take": func(ctx context.Context) error {
			_, _, err := s.Take(ctx, taken)
			return err
		},
		"give back": func(ctx context.Context) error {
			s.taken.add(taken1("g", 1))
			return s.GiveBack(ctx, taken)
		},
	}
}

func taken1(gate string, at int64) taken { return taken{gate: gate, cost: 1, at: at} }

// allFail wants every call to say soon that the store is unavailable, and why: on a busy
// machine too, but sooner than after the 3 s that go-redis waits by itself.
func allFail(t *testing.T, s *Store, why string) {
	t.Helper()
	for doing, call := range calls(s) {
		began := time.Now()
		err := call(context.Background())
		require.Less(t, time.Since(began), 2*time.Second, doing)
		require.ErrorIs(t, err, store.ErrUnavailable, doing)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context is not done")
		require.ErrorContains(t, err, "redis store: "+doing)
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), secret)
	}
}

func allPass(t *testing.T, s *Store) {
	t.Helper()
	for doing, call := range calls(s) {
		require.NoError(t, call(context.Background()), doing)
	}
}

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, DialTimeout: 100 * time.Millisecond,
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func storeAt(t *testing.T, addr string, timeout time.Duration) *Store {
	t.Helper()
	s, err := New(Options{Client: client(t, addr), Account: "a", Timeout: timeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// silent is a server that takes connections and never answers.
func silent(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			all = append(all, c)
		}
		for _, c := range all {
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-ended
	})
	return l
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	allFail(t, storeAt(t, silent(t).Addr().String(), 30*time.Millisecond), "no answer within 30ms")
}

func TestAServerThatIsNotThere(t *testing.T) {
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	s := storeAt(t, m.Addr(), time.Second)
	allPass(t, s)
	m.Close()
	allFail(t, s, "")
	require.NoError(t, m.Restart())
	t.Cleanup(m.Close)
	require.Eventually(t, func() bool { _, err := s.Load(context.Background()); return err == nil }, 10*time.Second, time.Millisecond)
	allPass(t, s)
}

func TestAServerThatAnswersWithErrors(t *testing.T) {
	m := miniredis.RunT(t)
	s := storeAt(t, m.Addr(), time.Second)
	allPass(t, s)
	for _, answer := range []string{
		"READONLY You can't write against a read only replica.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"LOADING Redis is loading the dataset in memory",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"BUSY Redis is busy running a script.",
	} {
		m.SetError(answer)
		allFail(t, s, strings.Fields(answer)[0])
		m.SetError("")
		allPass(t, s)
	}
}

func TestAServerThatHasForgottenTheScripts(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		allPass(t, s)
		require.NoError(t, w.client.ScriptFlush(context.Background()).Err())
		allPass(t, s)
	})
}

func TestAServerThatHasLostItsData(t *testing.T) {
	m := miniredis.RunT(t)
	s := storeAt(t, m.Addr(), time.Second)
	everything(t, s)
	m.FlushAll()
	everything(t, s)
}

func TestAKeyOfAnotherType(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		s := w.open(t)
		everything(t, s)
		for _, key := range w.keys(t) {
			if strings.HasSuffix(key, "test time") {
				continue
			}
			require.NoError(t, w.client.Del(ctx, key).Err())
			require.NoError(t, w.client.PFAdd(ctx, key, "x").Err()) // a string, and no text
			if kind := w.client.Type(ctx, key).Val(); kind == "string" || kind == "hll" {
				require.NoError(t, w.client.Del(ctx, key).Err())
				require.NoError(t, w.client.SAdd(ctx, key, "x").Err())
			}
		}
		for _, r := range requests() {
			_, err := s.Decide(ctx, r)
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorContains(t, err, "WRONGTYPE")
		}
		for doing, call := range calls(s) {
			if doing == "reset" {
				continue
			}
			require.ErrorIs(t, call(ctx), store.ErrUnavailable, doing)
		}
		require.NoError(t, s.Reset(ctx, "k"), "which takes away what was there")
	})
}

func TestAStateThatIsNone(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		s := w.open(t)
		require.NoError(t, w.client.Set(ctx, w.prefix()+"clock", "x", time.Minute).Err())
		for _, doing := range []string{"decide", "take"} {
			require.ErrorIs(t, calls(s)[doing](ctx), store.ErrUnavailable, doing)
		}
		require.NoError(t, w.client.Del(ctx, w.prefix()+"clock").Err())
		good := store.Fact{Key: "good", Value: []byte("v"), Until: w.time.Add(time.Hour)}
		require.NoError(t, s.Save(ctx, good))
		for key, kept := range map[string]string{
			"1": "no fact", "2": "", "3": ":", "4": "99999999999999999999:v", "5": "9999999999999999", "6": "\xff\x00", "7": "-5:v", "8": "1e99:v",
		} {
			require.NoError(t, w.client.HSet(ctx, w.prefix()+"facts", key, kept).Err())
		}
		facts, err := s.Load(ctx)
		require.NoError(t, err)
		require.Len(t, facts, 1, "what is no fact hides no other")
		require.Equal(t, good.Key, facts[0].Key)
	})
}

func TestADoneContextEndsACall(t *testing.T) {
	s := storeAt(t, silent(t).Addr().String(), 5*time.Second)
	for doing, call := range calls(s) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		err := call(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, doing)
		require.NotErrorIs(t, err, store.ErrUnavailable)
		cancel()
		require.ErrorIs(t, call(ctx), ctx.Err(), doing)
	}
}

func TestAClosedStore(t *testing.T) {
	m := miniredis.RunT(t)
	s, err := Open("redis://"+m.Addr(), "a")
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- s.Watch(context.Background(), func(store.Fact) {}) }()
	require.Eventually(t, func() bool { return len(m.PubSubChannels("")) == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, store.ErrUnavailable)
	allFail(t, s, "the store was closed")
	require.ErrorIs(t, s.Watch(context.Background(), func(store.Fact) {}), store.ErrUnavailable)
}

func TestOpenSaysWhatIsWrongAndNoPassword(t *testing.T) {
	for _, url := range []string{
		"", "redis", "http://:" + secret + "@localhost", "redis://:" + secret + "@host:port", "redis://:" + secret + "@%zz",
		"redis://user:" + secret + "@localhost/x",
	} {
		_, err := Open(url, "a")
		var argument *store.ArgumentError
		require.ErrorAs(t, err, &argument, url)
		require.Equal(t, "url", argument.Field)
		require.NotContains(t, err.Error(), secret)
	}
}

func TestCheckSaysWhyAServerCannotBeUsedAndNoPassword(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireAuth("another")
	gone := miniredis.NewMiniRedis()
	require.NoError(t, gone.Start())
	goneAddr := gone.Addr()
	gone.Close()
	opened := func(url string) *Store {
		s, err := Open(url, "a")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	for addr, why := range map[string]string{m.Addr(): "WRONGPASS", goneAddr: "refused"} {
		err := opened("redis://:" + secret + "@" + addr).Check(context.Background())
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), secret)
	}
	mute := opened("redis://:" + secret + "@" + silent(t).Addr().String() + "?read_timeout=200ms")
	err := mute.Check(context.Background())
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer within")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, mute.Check(ctx), context.DeadlineExceeded)

	s := opened("redis://:another@" + m.Addr())
	require.NoError(t, s.Check(context.Background()))
	allPass(t, s)
}

// A store can be there before its server is.
func TestStoreThatWasOpenedWhileItsServerWasAway(t *testing.T) {
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	defer func() { m.Close() }()
	addr := m.Addr()
	m.Close()
	s, err := Open("redis://"+addr, "a")
	require.NoError(t, err)
	defer s.Close()
	allFail(t, s, "refused")
	require.NoError(t, m.Restart())
	require.Eventually(t, func() bool { return s.Check(context.Background()) == nil }, 10*time.Second, time.Millisecond)
	allPass(t, s)
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	m := miniredis.RunT(t)
	good := Options{Client: client(t, m.Addr()), Account: "a"}
	unbounded := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer unbounded.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{m.Addr()}})
	defer cluster.Close()
	for i, c := range []struct {
		field  string
		change func(*Options)
	}{
		{"client", func(o *Options) { o.Client = nil }},
		{"client", func(o *Options) { o.Client = unbounded }},
		{"client", func(o *Options) { o.Client = cluster }},
		{"account", func(o *Options) { o.Account = "" }},
		{"account", func(o *Options) { o.Account = "a}b" }},
		{"account", func(o *Options) { o.Account = strings.Repeat("a", 1<<20) }},
		{"timeout", func(o *Options) { o.Timeout = -1 }},
		{"timeout", func(o *Options) { o.Timeout = time.Hour }},
	} {
		o := good
		c.change(&o)
		_, err := New(o)
		var argument *store.ArgumentError
		require.ErrorAs(t, err, &argument, fmt.Sprint(i))
		require.Equal(t, c.field, argument.Field)
		require.Less(t, len(err.Error()), 300)
	}
}

func TestWatchOutlastsALostConnection(t *testing.T) {
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	defer func() { m.Close() }()
	s, other := storeAt(t, m.Addr(), time.Second), storeAt(t, m.Addr(), time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	seen, ended := make(chan store.Fact, 100), make(chan error)
	go func() { ended <- s.Watch(ctx, func(f store.Fact) { seen <- f }) }()
	save := func(value string) {
		require.Eventually(t, func() bool {
			return other.Save(ctx, store.Fact{Key: "k", Value: []byte(value), Until: time.Now().Add(time.Hour)}) == nil
		}, 10*time.Second, time.Millisecond)
	}
	see := func(value string) {
		t.Helper()
		for {
			select {
			case f := <-seen:
				if string(f.Value) == value {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%q was not seen", value)
			}
		}
	}
	save("1")
	see("1")
	for i := range 3 {
		m.Close()
		require.NoError(t, m.Restart())
		save(fmt.Sprint("after ", i))
		see(fmt.Sprint("after ", i))
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestNewsThatCannotBeRead(t *testing.T) {
	news := appendString(appendString(nil, "key"), "5:value")
	facts, err := readNews(string(news))
	require.NoError(t, err)
	require.Equal(t, []store.Fact{{Key: "key", Value: []byte("value"), Until: time.UnixMicro(5)}}, facts)
	for i := 1; i < len(news); i++ {
		_, err := readNews(string(news[:i]))
		require.Error(t, err, i)
	}
	_, err = readNews("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	require.Error(t, err)
}

// A server that takes connections and hangs must not hold up who ends.
func TestWatchOfAServerThatHangsEndsSoonAfterItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	s, err := Open("redis://"+l.Addr().String(), "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Watch(ctx, func(store.Fact) {}) }()
	c := <-accepted
	defer c.Close()
	cancel()
	began := time.Now()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Less(t, time.Since(began), 2*time.Second)
	require.NoError(t, s.Close())
}
