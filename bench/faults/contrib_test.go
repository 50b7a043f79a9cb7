package faults

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/contrib/middleware/floodwait"
	contrib "github.com/gotd/contrib/middleware/ratelimit"
	"github.com/gotd/contrib/middleware/tg_prom"
	"github.com/gotd/td/bin"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/metrics"
	"github.com/weirtg/weir/ratelimit"
)

// answer lets everything pass.
func answer(context.Context, int64) error { return nil }

// slow answers after 100 ms.
func slow(context.Context, int64) error {
	time.Sleep(100 * time.Millisecond)
	return nil
}

// once floods the first call to a chat, and lets all others pass.
func once(message string, to int64) server {
	var asked atomic.Bool
	return func(_ context.Context, chat int64) error {
		if chat == to && asked.CompareAndSwap(false, true) {
			return tgerr.New(420, message)
		}
		return nil
	}
}

// waiter runs f beside contrib's Waiter.
func waiter(t *testing.T, f func(w *floodwait.Waiter)) {
	w := floodwait.NewWaiter()
	assert.NoError(t, w.Run(t.Context(), func(context.Context) error {
		synctest.Wait()
		f(w)
		return nil
	}))
}

func TestDeadlineTooNearTakesAToken(t *testing.T) {
	// One a second; the first call takes the burst, 50 are refused for their deadline, and
	// then one has time.
	next := func(t *testing.T, refused error, wait func(context.Context) error) time.Duration {
		require.NoError(t, wait(t.Context()))
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			require.ErrorIs(t, wait(ctx), refused)
			cancel()
		}
		return took(t, func() error { return wait(t.Context()) })
	}
	synctest.Test(t, func(t *testing.T) {
		call := client(contrib.New(1, 1), answer)
		peer := next(t, context.DeadlineExceeded, func(ctx context.Context) error { return call(ctx, 1) })
		l, g := gate(t, ratelimit.Limit{Rate: 1, Burst: 1})
		ours := next(t, ratelimit.ErrDeferred, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("after 50 refused calls the next one waits: contrib %s, weir %s", peer, ours)
		assert.Equal(t, 51*time.Second, peer)
		assert.Equal(t, time.Second, ours)
	})
}

func TestWaiterSendsOneByOne(t *testing.T) {
	all := func(t *testing.T, call func(context.Context, int64) error) time.Duration {
		return took(t, func() error {
			crowd(20, func(i int) { assert.NoError(t, call(t.Context(), int64(i+1))) }).Wait()
			return nil
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var peer time.Duration
		waiter(t, func(w *floodwait.Waiter) { peer = all(t, client(w, slow)) })
		ours := all(t, client(invoke.Must(invoke.Options{}), slow))
		t.Logf("20 calls together, of 100 ms each: Waiter %s, weir %s", peer, ours)
		assert.GreaterOrEqual(t, peer, 2*time.Second)
		assert.Equal(t, 100*time.Millisecond, ours)
	})
}

func TestWaiterServesAWaitTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer time.Duration
		waiter(t, func(w *floodwait.Waiter) {
			call := client(w, once("FLOOD_WAIT_2", 1))
			peer = took(t, func() error { return call(t.Context(), 1) })
		})
		call := client(invoke.Must(invoke.Options{}), once("FLOOD_WAIT_2", 1))
		ours := took(t, func() error { return call(t.Context(), 1) })
		t.Logf("FLOOD_WAIT_2 takes: Waiter %s, weir %s", peer, ours)
		assert.GreaterOrEqual(t, peer, 4*time.Second)
		assert.Equal(t, 2*time.Second, ours)
	})
}

func TestWaiterSendsACancelledCall(t *testing.T) {
	// A call is flooded and its caller gives up. How often is it sent?
	sent := func(t *testing.T, m telegram.Middleware) int64 {
		var n atomic.Int64
		flooded := once("FLOOD_WAIT_5", 1)
		call := client(m, func(ctx context.Context, chat int64) error {
			n.Add(1)
			return flooded(ctx, chat)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, call(ctx, 1), context.DeadlineExceeded)
		time.Sleep(time.Minute)
		return n.Load()
	}
	synctest.Test(t, func(t *testing.T) {
		var peer int64
		waiter(t, func(w *floodwait.Waiter) { peer = sent(t, w) })
		// The deadline says beforehand that there is no use in waiting.
		var refused *flood.WaitError
		m := invoke.Must(invoke.Options{})
		ours := sent(t, telegram.MiddlewareFunc(func(next tg.Invoker) telegram.InvokeFunc {
			call := m.Handle(next)
			return func(ctx context.Context, in bin.Encoder, out bin.Decoder) error {
				err := call(ctx, in, out)
				if errors.As(err, &refused) {
					return context.DeadlineExceeded
				}
				return err
			}
		}))
		t.Logf("a call that is given up on in its flood is sent: Waiter %d times, weir %d", peer, ours)
		assert.EqualValues(t, 2, peer)
		assert.EqualValues(t, 1, ours)
	})
}

func TestWaiterLeavesCallersHanging(t *testing.T) {
	// Ten calls wait for a flood to end when the client stops. How many still hang a day
	// later?
	hang := func(t *testing.T, m telegram.Middleware, stop func()) int64 {
		call := client(m, func(context.Context, int64) error { return tgerr.New(420, "FLOOD_WAIT_50") })
		var hanging atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		hanging.Store(10)
		callers := crowd(10, func(i int) {
			assert.Error(t, call(ctx, int64(i+1)))
			hanging.Add(-1)
		})
		time.Sleep(time.Second)
		stop()
		time.Sleep(24 * time.Hour)
		n := hanging.Load()
		cancel()
		callers.Wait()
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		w := floodwait.NewWaiter()
		stopped := make(chan struct{})
		running := crowd(1, func(int) {
			assert.NoError(t, w.Run(t.Context(), func(context.Context) error { <-stopped; return nil }))
		})
		synctest.Wait()
		peer := hang(t, w, func() { close(stopped) })
		running.Wait()
		m := invoke.Must(invoke.Options{SleepThreshold: flood.Always})
		ours := hang(t, m, m.Close)
		t.Logf("callers that hang after the end, of 10: Waiter %d, weir %d", peer, ours)
		assert.EqualValues(t, 10, peer)
		assert.Zero(t, ours)
	})
}

func TestWaiterStopsAllForOneChat(t *testing.T) {
	other := func(t *testing.T, m telegram.Middleware) time.Duration {
		call := client(m, once("FLOOD_WAIT_30", 1))
		flooded := crowd(1, func(int) { assert.NoError(t, call(t.Context(), 1)) })
		time.Sleep(time.Second)
		d := took(t, func() error { return call(t.Context(), 2) })
		flooded.Wait()
		return d
	}
	synctest.Test(t, func(t *testing.T) {
		var peer time.Duration
		waiter(t, func(w *floodwait.Waiter) { peer = other(t, w) })
		ours := other(t, invoke.Must(invoke.Options{SleepThreshold: flood.Always}))
		t.Logf("a chat is told to wait 30 s; a message to another chat takes: Waiter %s, weir %s", peer, ours)
		assert.GreaterOrEqual(t, peer, 29*time.Second)
		assert.Zero(t, ours)
	})
}

// dc is an account limit of 30 a second with a burst of 30, as a data centre enforces it:
// a refusal is a whole number of seconds, stands for that long, and a call made inside
// it adds a second.
type dc struct {
	mu     sync.Mutex
	tokens float64
	last   time.Time
	until  time.Time
	passed int
	floods int
	most   int // floods at one moment
	at     time.Time
	now    int
}

func (d *dc) answer(context.Context, int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.last.IsZero() {
		d.tokens = 30
	}
	d.tokens = min(30, d.tokens+30*now.Sub(d.last).Seconds())
	d.last = now
	switch {
	case now.Before(d.until):
		d.until = d.until.Add(time.Second)
	case d.tokens < 1-1e-6:
		d.until = now.Add(time.Second)
	default:
		d.tokens--
		d.passed++
		return nil
	}
	d.floods++
	if now != d.at {
		d.at, d.now = now, 0
	}
	d.now++
	d.most = max(d.most, d.now)
	return &tgerr.Error{Code: 420, Type: "FLOOD_WAIT", Argument: int((d.until.Sub(now) + time.Second - 1) / time.Second), Message: "FLOOD_WAIT"}
}

func TestSimpleWaiterRetriesAllAtOnce(t *testing.T) {
	// 32 workers send 300 messages to 100 chats; 9 s is the least that this takes.
	broadcast := func(t *testing.T, m telegram.Middleware) (*dc, time.Duration) {
		d := &dc{}
		call := client(m, d.answer)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		messages := make(chan int64, 300)
		for i := range 300 {
			messages <- int64(i%100 + 1)
		}
		close(messages)
		start := time.Now()
		crowd(32, func(int) {
			for chat := range messages {
				_ = call(ctx, chat) // d counts what has passed
			}
		}).Wait()
		return d, time.Since(start)
	}
	synctest.Test(t, func(t *testing.T) {
		peer, peerTook := broadcast(t, floodwait.NewSimpleWaiter())
		limits := map[classify.Category]ratelimit.Change{
			classify.Message: ratelimit.Rate(30).Burst(30),
			classify.Global:  ratelimit.Rate(30).Burst(30),
		}
		ours, oursTook := broadcast(t, invoke.Must(invoke.Options{RateLimits: limits}))
		t.Logf("SimpleWaiter: %d of 300 in %s, %d floods, %d at one moment", peer.passed, peerTook, peer.floods, peer.most)
		t.Logf("weir: %d of 300 in %s, %d floods, %d at one moment", ours.passed, oursTook, ours.floods, ours.most)
		assert.Less(t, peer.passed, 300)
		assert.Equal(t, 300, ours.passed)
		assert.Zero(t, ours.floods)
	})
}

func TestOversleepIsLost(t *testing.T) {
	// Each timer fires 1.5 ms late, as a coarse timer of a system does. 1000 calls in sequence at 1000/s.
	rateOf := func(t *testing.T, wait func(context.Context) error) float64 {
		require.NoError(t, wait(t.Context()))
		d := took(t, func() error {
			for range 1000 {
				if err := wait(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
		return 100 * float64(time.Second) / float64(d)
	}
	synctest.Test(t, func(t *testing.T) {
		call := client(contrib.New(1000, 1).WithClock(late{clock.System}), answer)
		peer := rateOf(t, func(ctx context.Context) error { return call(ctx, 1) })
		l := ratelimit.New(ratelimit.Options{Clock: late{clock.System}})
		g, err := l.NewGate("gate", ratelimit.Limit{Rate: 1000, Burst: 1})
		require.NoError(t, err)
		ours := rateOf(t, func(ctx context.Context) error { return l.Acquire(ctx, 1, g) })
		t.Logf("of 1000/s, burst 1, with timers 1.5 ms late: contrib %.2f %%, weir %.2f %%", peer, ours)
		assert.Less(t, peer, 95.0)
		assert.Greater(t, ours, 99.9)
	})
}

// late is a clock whose timers fire 1.5 ms late.
type late struct{ clock.Clock }

func (l late) Timer(d time.Duration) clock.Timer {
	return lateTimer{l.Clock.Timer(d + lateBy)}
}

type lateTimer struct{ clock.Timer }

func (l lateTimer) Reset(d time.Duration) { l.Timer.Reset(d + lateBy) }

const lateBy = 1500 * time.Microsecond

// counted sums up the series of a counter that carry one of the labels' values; with an
// empty value, all of them.
func counted(t *testing.T, name, value string, collectors ...prometheus.Collector) (sum float64) {
	registry := prometheus.NewRegistry()
	for _, c := range collectors {
		require.NoError(t, registry.Register(c))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (value == "" || strings.Contains(m.String(), `"`+value+`"`)) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestPrometheusCountsNoFailure(t *testing.T) {
	failing := func(context.Context, int64) error { return tgerr.New(400, "CHAT_WRITE_FORBIDDEN") }
	theirs := tg_prom.New()
	own := metrics.New("main")
	for _, m := range []telegram.Middleware{theirs, invoke.Must(invoke.Options{Observer: own})} {
		call := client(m, failing)
		for range 3 {
			require.Error(t, call(t.Context(), 1))
		}
	}
	peer := counted(t, "tg_rpc_failures_total", "", theirs.Metrics()...)
	ours := counted(t, "weir_requests_total", "rpc_error", own)
	t.Logf("of 3 failures are counted: tg_prom %.0f, weir %.0f", peer, ours)
	assert.Zero(t, peer)
	assert.EqualValues(t, 3, ours)
}

func TestPrometheusPanicsOnAnErrorThatIsNoRPCError(t *testing.T) {
	broken := func(context.Context, int64) error { return errors.New("connection reset") }
	assert.Panics(t, func() { _ = client(tg_prom.New(), broken)(t.Context(), 1) })
	own := metrics.New("main")
	assert.NotPanics(t, func() {
		assert.ErrorContains(t, client(invoke.Must(invoke.Options{Observer: own}), broken)(t.Context(), 1), "connection reset")
	})
}
