package redisstore

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// account is one whose processes run, in virtual time, in one test.
type account struct {
	t    *testing.T
	mini *miniredis.Miniredis

	mu       sync.Mutex
	admitted map[*ratelimit.Limiter][]time.Time
	all      []time.Time
}

func newAccount(t *testing.T) *account {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	return &account{t: t, mini: m, admitted: map[*ratelimit.Limiter][]time.Time{}}
}

func (a *account) store() *Store {
	c := redis.NewClient(&redis.Options{
		ContextTimeoutEnabled: true, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // it looks names up
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return a.mini.Dial() },
	})
	s, err := New(Options{Client: c, Account: "a"})
	require.NoError(a.t, err)
	a.t.Cleanup(func() {
		require.NoError(a.t, s.Close())
		require.NoError(a.t, c.Close())
	})
	return s
}

// process makes calls from many goroutines until ctx is done.
func (a *account) process(ctx context.Context, running *sync.WaitGroup, rules ...ratelimit.Rule) *ratelimit.Limiter {
	l := ratelimit.New(ratelimit.Options{Shared: a.store(), OnFailure: store.FailLocal})
	var gates []ratelimit.Gate
	for i, rule := range rules {
		g, err := l.NewGate(string(rune('a'+i)), rule)
		require.NoError(a.t, err)
		gates = append(gates, g)
	}
	for range 8 {
		running.Go(func() {
			for l.Acquire(ctx, 1, gates...) == nil {
				a.mu.Lock()
				a.admitted[l] = append(a.admitted[l], time.Now())
				a.all = append(a.all, time.Now())
				a.mu.Unlock()
			}
		})
	}
	return l
}

func TestLimitersShareAnAccount(t *testing.T) {
	global := ratelimit.Limit{Rate: 30, Burst: 40}
	wide := ratelimit.Limit{Rate: 100, Burst: 100}
	group := ratelimit.Window{Limit: 20, Period: time.Second}
	for name, c := range map[string]struct {
		rules    []ratelimit.Rule
		possible int
		most     func(d time.Duration) float64
	}{
		"bucket":            {[]ratelimit.Rule{wide, global}, 40 + 60*30, func(d time.Duration) float64 { return 40 + 30*d.Seconds() }},
		"window and bucket": {[]ratelimit.Rule{group, global}, 60 * 20, func(d time.Duration) float64 { return 20 * (1 + float64(d/time.Second)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for range 4 {
					a.process(ctx, &running, c.rules...)
				}
				time.Sleep(time.Minute - time.Millisecond)
				cancel()
				running.Wait()
				require.InEpsilon(t, c.possible, len(a.all), 0.01)
				for i := range a.all {
					for j := i; j < len(a.all); j++ {
						if d := a.all[j].Sub(a.all[i]); float64(j-i+1) > c.most(d) {
							t.Fatalf("%d were admitted in %v: want %.1f at most", j-i+1, d, c.most(d))
						}
					}
				}
				for _, of := range a.admitted {
					require.InEpsilon(t, float64(len(a.all))/4, len(of), 0.1)
				}
			})
		})
	}
}

// While the server is down, each process decides by itself; when it is back, with its
// data or without, there is no burst.
func TestNoBurstAfterAnOutage(t *testing.T) {
	for name, lost := range map[string]bool{"data kept": false, "data lost": true} {
		for rule, most := range map[ratelimit.Rule]int{ // in 19 s
			ratelimit.Limit{Rate: 30, Burst: 40}:                                           19 * 30,
			ratelimit.Window{Limit: 40, Period: 2 * time.Second}:                           10 * 40,
			ratelimit.Window{Limit: 40, Period: 2 * time.Second, Kind: ratelimit.FirstHit}: 10 * 40,
		} {
			t.Run(name+", "+rule.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := newAccount(t)
					ctx, cancel := context.WithCancel(t.Context())
					var running sync.WaitGroup
					const n = 3
					for range n {
						a.process(ctx, &running, rule)
					}
					time.Sleep(10 * time.Second)
					a.mini.SetError("LOADING Redis is loading the dataset in memory")
					time.Sleep(10 * time.Second)
					if lost {
						a.mini.FlushAll()
					}
					a.mini.SetError("")
					back := time.Now()
					time.Sleep(20 * time.Second)
					cancel()
					running.Wait()

					after := 0
					for _, at := range a.all {
						if at.After(back.Add(time.Second)) { // by which each has asked again
							after++
						}
					}
					require.LessOrEqual(t, after, most+n, "what the rule allows, and one call of each that was on its way")
					require.GreaterOrEqual(t, after, most*9/10)
				})
			})
		}
	}
}
