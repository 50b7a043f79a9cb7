package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

func sharing(m ratelimit.Shared) *ratelimit.Limiter {
	return ratelimit.New(ratelimit.Options{Shared: m})
}

func TestProcessesTogetherKeepToOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		limit := ratelimit.Limit{Rate: 30, Burst: 40}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			l := sharing(m)
			global := newGate(t, l, "global", limit.Rate, limit.Burst)
			chats := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3})
			for i := range 200 {
				wg.Go(func() {
					for l.Acquire(ctx, 1, chats.Key(uint64(i)), global) == nil {
					}
				})
			}
		}
		wg.Wait()
		require.LessOrEqual(t, m.excess("global", limit), 0.0)
		require.InEpsilon(t, limit.Burst+60*int(limit.Rate), len(m.grants["global"]), 0.01)
	})
}

func TestProcessesTogetherKeepToAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 {
			l := sharing(m)
			group := newGates(t, l, ratelimit.Window{Limit: 20, Period: time.Minute}).Key(7)
			for range 10 {
				wg.Go(func() {
					for l.Acquire(ctx, 1, group) == nil {
					}
				})
			}
		}
		wg.Wait()
		grants := m.grants["chat"]
		for i := 20; i < len(grants); i++ {
			require.GreaterOrEqual(t, grants[i]-grants[i-20], int64(time.Minute))
		}
		require.GreaterOrEqual(t, len(grants), 190)
	})
}

func TestOnlyTheHeadOfAQueueAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		l := sharing(m)
		category, global := newGate(t, l, "category", 50, 5), newGate(t, l, "global", 20, 10)
		const waiters = 1000
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			order []int
		)
		for i := range waiters {
			wg.Go(func() {
				assert.NoError(t, l.Acquire(t.Context(), 1, category, global))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait() // it has its place, or asks
		}
		wg.Wait()
		for i, who := range order {
			require.Equal(t, i, who, "in the order of arrival")
		}
		asks, _ := m.count()
		require.LessOrEqual(t, asks, waiters+10, "one for each admission")
	})
}

func TestAskDoesNotDelayOtherGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(20 * time.Millisecond)
		l := sharing(m)
		chats := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3})
		start := time.Now()
		var wg sync.WaitGroup
		for chat := range uint64(50) {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, chats.Key(chat))) })
		}
		wg.Wait()
		require.Equal(t, 40*time.Millisecond, time.Since(start))
	})
}

// Another process has closed a wide gate, or a narrow one.
func TestRefusedCallWaitsAtTheNarrowestClosedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		l, other := sharing(m), sharing(m)
		gates := func(l *ratelimit.Limiter) (narrow, second, wide ratelimit.Gate) {
			return newGate(t, l, "narrow", 1, 1), newGate(t, l, "second", 1, 1), newGate(t, l, "wide", 10, 10)
		}
		narrow, second, wide := gates(l)
		theirs, _, _ := gates(other)
		require.NoError(t, other.Acquire(t.Context(), 1, theirs))

		done := make(chan error)
		start := time.Now()
		go func() { done <- l.Acquire(t.Context(), 1, narrow, wide) }()
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 1, narrow.Stats().Waiters)
		require.Zero(t, wide.Stats().Waiters, "it does not hold up the others")
		require.Less(t, narrow.Stats().Tokens, 0.1, "what the others have used shows")
		require.NoError(t, l.Acquire(t.Context(), 1, second, wide))
		require.NoError(t, <-done)
		require.InDelta(t, time.Second, time.Since(start), float64(10*time.Millisecond))
	})
}

func TestDeadlineThatOthersStandAgainstIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		window := ratelimit.Window{Limit: 2, Period: time.Minute}
		l, other := sharing(m), sharing(m)
		group, theirs := newGates(t, l, window).Key(1), newGates(t, other, window).Key(1)
		require.NoError(t, other.Acquire(t.Context(), 2, theirs))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		err := l.Acquire(ctx, 1, group)
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, ratelimit.ErrDeferred)
		require.InDelta(t, time.Minute, refused.Wait, float64(10*time.Millisecond))
		require.Less(t, time.Since(start), 10*time.Millisecond)

		require.ErrorAs(t, l.Try(1, group), &refused)
		require.ErrorIs(t, refused, ratelimit.ErrRejected)
		require.InDelta(t, time.Minute, refused.Wait, float64(10*time.Millisecond))
		require.ErrorIs(t, l.Acquire(ctx, 3, group), ratelimit.ErrImpossible)
	})
}

func TestCallCancelledWhileItAsksCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 * time.Millisecond)
		l := sharing(m)
		g := newGate(t, l, "g", 0.001, 3)
		for _, after := range []time.Duration{5, 15} {
			ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
			require.ErrorIs(t, l.Acquire(ctx, 1, g), context.DeadlineExceeded)
			cancel()
		}
		_, back := m.count()
		require.Equal(t, 2, back)
		require.Zero(t, g.Stats().Waiters)
		require.NoError(t, l.Try(3, g))
	})
}

func TestCloseEndsAnAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 * time.Millisecond)
		l := sharing(m)
		g := newGate(t, l, "g", 0.001, 2)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { assert.ErrorIs(t, l.Acquire(t.Context(), 1, g), ratelimit.ErrClosed) })
		}
		wg.Go(func() {
			_, err := l.TryAcquire(1, newGate(t, l, "h", 1, 1))
			assert.ErrorIs(t, err, ratelimit.ErrClosed)
		})
		time.Sleep(5 * time.Millisecond)
		l.Close()
		wg.Wait()
		asks, back := m.count()
		require.Equal(t, 2, back)
		require.Equal(t, 4, asks)
	})
}

func TestLimitChangesUnderACallThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 * time.Millisecond)
		l := sharing(m)
		g := newGate(t, l, "g", 1, 5)
		done := make(chan error, 1)
		go func() { done <- l.Acquire(t.Context(), 1, g) }()
		time.Sleep(5 * time.Millisecond)
		update(t, l, g, ratelimit.Burst(0)) // a pause
		time.Sleep(time.Minute)
		require.Empty(t, done, "the pause holds, though the store has agreed before it")
		_, back := m.count()
		require.Equal(t, 1, back)
		asks, _ := m.count()
		require.Equal(t, 2, asks, "nobody asks about a gate that is paused")
		update(t, l, g, ratelimit.Burst(5))
		require.NoError(t, <-done)
	})
}

func TestRefusalByAnOldRuleDoesNotStand(t *testing.T) {
	for name, at := range map[string]time.Duration{"while it is on its way": 15 * time.Millisecond, "afterwards": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(10 * time.Millisecond)
				window := ratelimit.Window{Limit: 2, Period: time.Hour}
				l, other := sharing(m), sharing(m)
				g, theirs := newWindow(t, l, window), newWindow(t, other, window)
				require.NoError(t, other.Acquire(t.Context(), 2, theirs))
				done := make(chan error)
				go func() { done <- l.Acquire(t.Context(), 1, g) }()
				time.Sleep(at)
				start := time.Now()
				window.Limit = 3
				update(t, l, g, ratelimit.To(window))
				require.NoError(t, <-done)
				require.Less(t, time.Since(start), time.Second)
			})
		})
	}
}

func TestWhatOthersHaveUsedShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		l, other := sharing(m), sharing(m)
		g, theirs := newGate(t, l, "g", 0.01, 10), newGate(t, other, "g", 0.01, 10)
		require.NoError(t, other.Acquire(t.Context(), 5, theirs))
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.InDelta(t, 4, g.Stats().Tokens, 0.01)
		require.InDelta(t, 0.6, l.Congestion(), 0.01)
	})
}

// Whoever works at a shared bucket sees how much the others take of it, whether it is
// full at first or empty all the time.
func TestCallsOfOthersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		var gates [3]ratelimit.Gate
		var own [3]int
		for i := range gates {
			l := sharing(m)
			gates[i] = newGate(t, l, "g", 10, 40)
			wg.Go(func() {
				for l.Acquire(ctx, 1+i, gates[i]) == nil {
					own[i] += 1 + i
				}
			})
		}
		wg.Wait()
		for i, g := range gates {
			require.InDelta(t, own[0]+own[1]+own[2]-own[i], g.Others(), 8, "gate %d, which took %d itself", i, own[i])
		}
	})
}

func TestLanesKeepTheirTurnsWhileOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 * time.Millisecond)
		l := sharing(m)
		narrow, wide := newGate(t, l, "narrow", 10, 1), newGate(t, l, "wide", 100, 1)
		var (
			mu    sync.Mutex
			order []string
			wg    sync.WaitGroup
		)
		call := func(name string, acquire func(context.Context, int, ...ratelimit.Gate) error) {
			wg.Go(func() {
				assert.NoError(t, acquire(t.Context(), 1, narrow, wide))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			time.Sleep(time.Microsecond)
		}
		call("b0", l.AcquireBackground) // it asks when the others come
		call("b1", l.AcquireBackground)
		for range 12 {
			call("n", l.Acquire)
		}
		wg.Wait()
		want := []string{"b0", "n", "n", "n", "n", "n", "n", "n", "n", "n", "b1", "n", "n", "n"}
		require.Equal(t, want, order)
		asks, _ := m.count()
		require.LessOrEqual(t, asks, 30)
	})
}

func TestTryAsksOnceAndPassesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 * time.Millisecond)
		l := sharing(m)
		g := newGate(t, l, "g", 0.001, 3)
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, g) }()
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected, "somebody asks")
		require.Zero(t, g.Stats().Waiters)
		require.Less(t, l.Congestion(), 1.0, "to ask is not to wait")
		require.Zero(t, time.Since(start))
		require.NoError(t, <-done)

		start = time.Now()
		p, err := l.TryAcquire(2, g)
		require.NoError(t, err)
		require.Equal(t, 20*time.Millisecond, time.Since(start), "a round trip")
		asks, _ := m.count()
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected)
		again, _ := m.count()
		require.Equal(t, asks, again, "this process knows by itself")

		p.Return()
		require.NoError(t, l.Try(2, g))
		l.Refund(2, g)
		require.NoError(t, l.Try(2, g))
		_, back := m.count()
		require.Equal(t, 4, back)
	})
}

func TestWaitersOfOneGateAreHandedWhatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sharing(newMemory(time.Millisecond))
		g := newGate(t, l, "g", 0.001, 1)
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				assert.NoError(t, l.Acquire(t.Context(), 1, g))
				l.Refund(1, g)
			})
		}
		wg.Wait()
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestOwnRefundOpensAGateThatOthersHadClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		window := ratelimit.Window{Limit: 2, Period: time.Hour}
		l, other := sharing(m), sharing(m)
		group, theirs := newGates(t, l, window).Key(1), newGates(t, other, window).Key(1)
		require.NoError(t, other.Acquire(t.Context(), 1, theirs))
		require.NoError(t, l.Acquire(t.Context(), 1, group))
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, group) }()
		time.Sleep(time.Minute)
		require.Equal(t, 1, group.Stats().Waiters)
		require.Zero(t, group.Stats().Tokens)
		l.Refund(1, group)
		start := time.Now()
		require.NoError(t, <-done)
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestKeysAreTheSameInAllProcesses(t *testing.T) {
	a, b := sharing(agreeing{}), sharing(agreeing{})
	require.Equal(t, a.Key("/award 17"), b.Key("/award 17"))
	require.NotEqual(t, a.Key("/award 17"), b.Key("/award 18"))
	require.Equal(t, uint64(0xba7816bf8f01cfea), a.Key("abc"), "the first 8 bytes of its SHA-256")
}

func TestSharedGatesHaveNamesOfTheirOwn(t *testing.T) {
	l := sharing(agreeing{})
	newGate(t, l, "g", 1, 1)
	_, err := l.NewGate("g", ratelimit.Limit{Rate: 1, Burst: 1})
	require.ErrorContains(t, err, "gate g is there already")
	_, err = l.NewGates("g", ratelimit.Limit{Rate: 1, Burst: 1})
	require.Error(t, err)
}

// outages notes what a limiter tells of them.
type outages struct {
	mu   sync.Mutex
	told []bool
}

func (o *outages) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, err == nil)
}

func (o *outages) limiter(m ratelimit.Shared, policy store.Policy) *ratelimit.Limiter {
	return ratelimit.New(ratelimit.Options{Shared: m, OnFailure: policy, Reporter: store.NewReporter(nil, o.note)})
}

func TestClosedFailsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, o := newMemory(time.Millisecond), &outages{}
		l := o.limiter(m, store.FailClosed)
		g := newGate(t, l, "g", 1, 1)
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		m.setDown(true)
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				err := l.Acquire(t.Context(), 1, g)
				assert.ErrorIs(t, err, store.ErrUnavailable)
				assert.ErrorContains(t, err, "gate g: ")
			})
		}
		wg.Wait()
		require.Less(t, time.Since(start), 1200*time.Millisecond, "at their turn, and the first has asked")
		start = time.Now()
		require.ErrorIs(t, l.Try(1, g), store.ErrUnavailable)
		require.ErrorIs(t, l.Acquire(t.Context(), 1, g), store.ErrUnavailable)
		require.Zero(t, time.Since(start), "they do not ask once more")

		before, _ := m.count()
		for range 1000 {
			require.Error(t, l.Try(1, g))
			time.Sleep(10 * time.Millisecond)
		}
		after, _ := m.count()
		require.InDelta(t, 12, after-before, 4, "an ask a second")
		synctest.Wait()
		require.Equal(t, []bool{false}, o.told)

		m.setDown(false)
		time.Sleep(time.Second)
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		synctest.Wait()
		require.Equal(t, []bool{false, true}, o.told)
		m.setDown(true)
		time.Sleep(time.Second)
		require.Error(t, l.Try(1, g))
		synctest.Wait()
		require.Equal(t, []bool{false, true, false}, o.told)
	})
}

func TestOpenAdmitsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, o := newMemory(time.Millisecond), &outages{}
		l := o.limiter(m, store.FailOpen)
		g, paused := newGate(t, l, "g", 0.001, 1), newGate(t, l, "paused", 0, 1)
		other := newGate(t, l, "other", 1, 1)
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, g)) })
		}
		held := make(chan error, 1)
		go func() { held <- l.Acquire(t.Context(), 1, paused) }()
		synctest.Wait()
		m.setDown(true)
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, other))
		wg.Wait()
		require.Equal(t, 100*time.Millisecond, time.Since(start), "those who waited are let go with it")
		start = time.Now()
		hurry, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 100 {
			require.NoError(t, l.Acquire(hurry, 1, g))
			p, err := l.TryAcquire(1, g)
			require.NoError(t, err)
			p.Return()
		}
		require.Zero(t, time.Since(start))
		require.Equal(t, 1.0, other.Stats().Tokens, "nothing was counted")
		require.ErrorIs(t, l.Acquire(t.Context(), 2, g), ratelimit.ErrImpossible)
		require.Empty(t, held, "a pause is a pause")
		update(t, l, paused, ratelimit.Rate(1))
		require.NoError(t, <-held)
		synctest.Wait()
		require.Equal(t, []bool{false}, o.told)
	})
}

func TestLocalGoesOnInAnOutageAndComesBackWithoutABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, o := newMemory(time.Millisecond), &outages{}
		l := o.limiter(m, store.FailLocal)
		limit := ratelimit.Limit{Rate: 10, Burst: 20}
		g := newGate(t, l, "g", limit.Rate, limit.Burst)
		window := newGates(t, l, ratelimit.Window{Limit: 200, Period: 10 * time.Second}).Key(1)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		var (
			mu     sync.Mutex
			passed []time.Time
			wg     sync.WaitGroup
		)
		for range 50 {
			wg.Go(func() {
				for l.Acquire(ctx, 1, window, g) == nil {
					mu.Lock()
					passed = append(passed, time.Now())
					mu.Unlock()
				}
			})
		}
		time.Sleep(10 * time.Second)
		m.setDown(true)
		time.Sleep(10 * time.Second)
		m.lose()
		m.setDown(false)
		time.Sleep(10 * time.Second)
		m.lose()
		wg.Wait()
		for i := range passed {
			for j := i; j < len(passed); j++ {
				most := float64(limit.Burst) + limit.Rate*(passed[j].Sub(passed[i])+5*time.Millisecond).Seconds()
				require.LessOrEqual(t, float64(j-i+1), most+1e-6)
			}
		}
		require.GreaterOrEqual(t, len(passed), 20+40*10-20, "no time was lost but while it was asked in vain")
		synctest.Wait()
		require.Equal(t, []bool{false, true}, o.told)
	})
}

func TestStoreThatIsSlowHangsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Hour)
		l := sharing(m)
		g := newGate(t, l, "g", 1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, l.Acquire(ctx, 1, g), context.DeadlineExceeded)
		require.Less(t, time.Since(start), time.Second)
		require.ErrorIs(t, l.Try(1, g), store.ErrUnavailable, "the outage was noticed")
	})
}

// strange is a Shared that breaks its promises.
type strange struct {
	found []ratelimit.Found
	err   error
}

func (s strange) Take(context.Context, []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	return false, s.found, s.err
}

func (s strange) GiveBack(context.Context, []ratelimit.Charge) error { return s.err }

func TestStoreThatBreaksItsPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range []strange{{}, {err: errors.New("odd")}, {found: make([]ratelimit.Found, 2)}} {
			l := sharing(s)
			require.ErrorIs(t, l.Acquire(t.Context(), 1, newGate(t, l, "g", 1, 1)), store.ErrUnavailable)
		}
		l := sharing(strange{found: make([]ratelimit.Found, 1)})
		g := newGate(t, l, "g", 1, 1)
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.Acquire(ctx, 1, g), ratelimit.ErrDeferred)
	})
}

func TestOutageIsToldByOneAtATimeAndMayCallTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(0)
		var (
			l    *ratelimit.Limiter
			g    ratelimit.Gate
			busy atomic.Int32
			told atomic.Int32
		)
		l = ratelimit.New(ratelimit.Options{Shared: m, OnFailure: store.FailLocal, Reporter: store.NewReporter(nil, func(error) {
			assert.Equal(t, int32(1), busy.Add(1))
			defer busy.Add(-1)
			told.Add(1)
			_ = l.Try(1, g)
			l.Congestion()
		})})
		g = newGate(t, l, "g", 1000, 1000)
		chats := newGates(t, l, ratelimit.Limit{Rate: 1000, Burst: 1000})
		var wg sync.WaitGroup
		for i := range uint64(20) {
			wg.Go(func() {
				for range 100 {
					assert.NoError(t, l.Acquire(t.Context(), 1, chats.Key(i)))
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		for range 10 {
			time.Sleep(150 * time.Millisecond)
			m.setDown(true)
			time.Sleep(150 * time.Millisecond)
			m.setDown(false)
		}
		wg.Wait()
		require.Positive(t, told.Load())
	})
}

func TestOpenAsksAgainThoughNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(0)
		var told []error
		l := ratelimit.New(ratelimit.Options{Shared: m, OnFailure: store.FailOpen, Reporter: store.NewReporter(nil, func(err error) { told = append(told, err) })})
		g := newGate(t, l, "g", 10, 10)
		m.setDown(true)
		for range 1000 {
			require.NoError(t, l.Try(1, g))
			time.Sleep(10 * time.Millisecond)
		}
		m.setDown(false)
		passed := 0
		for i := range 3000 {
			if l.Try(1, g) == nil && i >= 2000 {
				passed++
			}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		require.Len(t, told, 2)
		require.NoError(t, told[1])
		require.LessOrEqual(t, passed, 11, "the limit holds again")
	})
}

func TestSetsOfOneNameHaveRulesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{Shared: newMemory(0)})
		one, err := l.NewGates("pace", ratelimit.Limit{Rate: 1, Burst: 1})
		require.NoError(t, err)
		two, err := one.Another(ratelimit.Limit{Rate: 1, Burst: 5})
		require.NoError(t, err)
		_, err = one.Another(ratelimit.Limit{Rate: -1})
		require.ErrorContains(t, err, "pace.rate is -1")
		require.NoError(t, l.Try(1, one.Key(1)))
		require.ErrorIs(t, l.Try(1, one.Key(1)), ratelimit.ErrRejected)
		for range 5 {
			require.NoError(t, l.Try(1, two.Key(2)))
		}
		require.ErrorIs(t, l.Try(1, two.Key(2)), ratelimit.ErrRejected)
	})
}

// The program panics when it hears of an outage. The call that met it has its turn at the
// gate.
func TestReporterThatPanicsClosesNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Millisecond)
		l := ratelimit.New(ratelimit.Options{Shared: m, OnFailure: store.FailLocal, Reporter: store.NewReporter(nil, func(error) { panic("told") })})
		g := newGate(t, l, "g", 1, 10)
		for _, down := range []bool{true, false, true} {
			m.setDown(down)
			time.Sleep(2 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			require.NoError(t, l.Acquire(ctx, 1, g))
			require.NoError(t, l.Try(1, g))
			cancel()
		}
	})
}
