package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
)

// begin starts calls that find room.
func begin(t *testing.T, l *ratelimit.Limiter, calls int, gates ...ratelimit.Gate) {
	t.Helper()
	for range calls {
		require.NoError(t, l.TryBegin(1, gates...))
	}
}

func settle(l *ratelimit.Limiter, calls int, gates ...ratelimit.Gate) {
	for range calls {
		l.Settle(1, gates...)
	}
}

func TestCallThatIsNotAnsweredIsNotRefilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 3)
		begin(t, l, 3, g)
		time.Sleep(time.Hour)
		err := l.TryBegin(1, g)
		refused, ok := errors.AsType[*ratelimit.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, 3, refused.Pending)
		require.Equal(t, 100*time.Millisecond, refused.Wait, "no sooner, even if all were answered now")

		l.Settle(1, g)
		require.Error(t, l.TryBegin(1, g), "the server may have counted it just now")
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, l.TryBegin(1, g))
		require.Error(t, l.TryBegin(1, g))
	})
}

func TestCallsThatAreAnsweredLateCostNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 10)
		start := time.Now()
		var wg sync.WaitGroup
		for range 110 {
			require.NoError(t, l.Begin(t.Context(), 1, g))
			wg.Go(func() {
				time.Sleep(300 * time.Millisecond)
				l.Settle(1, g)
			})
		}
		require.LessOrEqual(t, time.Since(start), 10*time.Second+300*time.Millisecond, "once behind by a round trip, then at the rate")
		wg.Wait()
	})
}

func TestUnansweredCallDoesNotLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []ratelimit.WindowKind{ratelimit.Sliding, ratelimit.Aligned, ratelimit.FirstHit} {
			l := ratelimit.New(ratelimit.Options{})
			g := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Minute, Kind: kind})
			begin(t, l, 2, g)
			time.Sleep(90 * time.Second)
			require.Error(t, l.TryBegin(1, g), "%v", kind)
			settle(l, 2, g)
			require.Error(t, l.TryBegin(1, g), "%v: they may have been counted just now", kind)
			time.Sleep(time.Minute)
			begin(t, l, 2, g)
		}
	})
}

// Each of these is woken by the answer: no timer runs, since nobody knows when it comes.
func TestWaiterIsWokenByTheAnswer(t *testing.T) {
	for name, gates := range map[string]func(t *testing.T, l *ratelimit.Limiter) ratelimit.Gate{
		"gate": func(t *testing.T, l *ratelimit.Limiter) ratelimit.Gate { return newGate(t, l, "g", 10, 2) },
		"chat": func(t *testing.T, l *ratelimit.Limiter) ratelimit.Gate {
			return newGates(t, l, ratelimit.Limit{Rate: 10, Burst: 2}).Key(7)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				g := gates(t, l)
				begin(t, l, 2, g)
				start := time.Now()
				var order []string
				var mu sync.Mutex
				var wg sync.WaitGroup
				wait := func(name string, begin func(context.Context, int, ...ratelimit.Gate) error) {
					wg.Go(func() {
						assert.NoError(t, begin(t.Context(), 1, g))
						mu.Lock()
						order = append(order, name)
						mu.Unlock()
						time.Sleep(time.Second)
						l.Settle(1, g)
					})
					synctest.Wait()
				}
				wait("background", l.BeginBackground)
				wait("first", l.Begin)
				wait("second", l.Begin)
				require.Equal(t, 3, g.Stats().Waiters)
				time.Sleep(10 * time.Second)
				settle(l, 2, g)
				wg.Wait()
				require.Equal(t, []string{"first", "second", "background"}, order)
				// Room 100 ms and 200 ms after the answers, and for the last 100 ms after the first's.
				require.Equal(t, 10*time.Second+100*time.Millisecond+time.Second+100*time.Millisecond+time.Second, time.Since(start))
				require.Zero(t, g.Stats().Pending)
			})
		})
	}
}

func TestWaiterForAnAnswerLeavesWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 1, 1)
		begin(t, l, 1, g)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, l.Begin(ctx, 1, g), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start = time.Now()
		require.ErrorIs(t, l.Begin(short, 1, g), ratelimit.ErrDeferred, "whenever the answer comes")
		require.Zero(t, time.Since(start))
	})
}

func TestCanceledCallMakesRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g, chats := newGate(t, l, "g", 1, 1), newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 1})
		begin(t, l, 1, chats.Key(1), g)
		done := make(chan error)
		go func() { done <- l.Begin(t.Context(), 1, chats.Key(1), g) }()
		synctest.Wait()
		start := time.Now()
		l.Cancel(1, chats.Key(1), g)
		require.NoError(t, <-done)
		require.Zero(t, time.Since(start))
		require.Equal(t, 1, chats.Stats().Pending)
		l.Cancel(1, chats.Key(1), g)
		require.Zero(t, chats.Stats().Live)
		require.Equal(t, 1.0, g.Stats().Tokens)
	})
}

func TestAlbumWaitsForAllAnswersAndIsChargedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3}).Key(1)
		album := chat.Times(10)
		begin(t, l, 1, chat)
		require.Error(t, l.TryBegin(1, album), "a call is under way")
		settle(l, 1, chat)
		time.Sleep(time.Second)
		begin(t, l, 1, album)
		time.Sleep(time.Minute)
		require.Error(t, l.TryBegin(1, chat))
		l.Settle(1, album)
		time.Sleep(8*time.Second - 1)
		require.Error(t, l.TryBegin(1, chat), "10 messages take 10 seconds, and the chat holds 3")
		time.Sleep(time.Nanosecond)
		begin(t, l, 1, chat)
	})
}

func TestLimitChangesWhileCallsArePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 10})
		g := newGate(t, l, "g", 10, 10)
		album := chats.Key(1).Times(8)
		require.NoError(t, l.TryBegin(1, album, g))
		begin(t, l, 4, g)
		update(t, l, g, ratelimit.Burst(3))
		update(t, l, chats.Set(), ratelimit.Burst(2))
		require.Zero(t, g.Stats().Tokens)
		require.Equal(t, 1.0, l.Congestion())
		require.Error(t, l.TryBegin(1, g), "five are under way where three may be")

		update(t, l, g, ratelimit.Rate(0))
		settle(l, 4, g)
		l.Settle(1, album, g)
		require.Zero(t, g.Stats().Pending)
		require.Zero(t, chats.Stats().Pending, "whatever the rule, all of it is taken away")
		update(t, l, g, ratelimit.Rate(10))
		require.Error(t, l.TryBegin(1, g), "they were charged while it was paused")
		time.Sleep(time.Minute)
		begin(t, l, 3, g)
	})
}

func TestGateOfAnUnansweredCallIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		for _, rule := range []ratelimit.Rule{ratelimit.Limit{Rate: 10, Burst: 1}, ratelimit.Window{Limit: 1, Period: time.Second}} {
			chats := newGates(t, l, rule)
			begin(t, l, 1, chats.Key(1))
			for key := range uint64(10_000) { // makes the set forget what it can
				begin(t, l, 1, chats.Key(key+2))
				settle(l, 1, chats.Key(key+2))
				time.Sleep(10 * time.Millisecond)
			}
			require.Error(t, l.TryBegin(1, chats.Key(1)), "%v", rule)
			require.Equal(t, 1, chats.Stats().Pending)
			settle(l, 1, chats.Key(1))
			time.Sleep(time.Second)
			begin(t, l, 1, chats.Key(1))
			settle(l, 1, chats.Key(1))
		}
	})
}

func TestStatsTellPendingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(t, l, "g", 10, 4)
		begin(t, l, 3, g)
		stats := g.Stats()
		require.Equal(t, 3, stats.Pending)
		require.Equal(t, 1.0, stats.Tokens)
		require.Equal(t, 0.75, l.Congestion())
		begin(t, l, 1, g)
		time.Sleep(time.Hour)
		require.Equal(t, 1.0, l.Congestion(), "its burst is all pending")
	})
}

func TestSettleOfNothingChangesNothing(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g, chats := newGate(t, l, "g", 1, 1), newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 1})
	l.Settle(1, chats.Key(1), g)
	l.Cancel(1, chats.Key(1), g)
	require.Equal(t, 1.0, g.Stats().Tokens)
	require.NoError(t, l.TryBegin(1, chats.Key(1), g))
}

// Permits, queued calls and calls that are given up, from many goroutines: whatever they do,
// nothing stays pending.
func TestNothingStaysPending(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	g, chats := newGate(t, l, "g", 20_000, 20), newGates(t, l, ratelimit.Limit{Rate: 10_000, Burst: 3})
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, seed))
			for range 500 {
				chat := chats.Key(random.Uint64N(4)).Times(1 + random.IntN(5))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Microsecond)
				if p, err := l.TryAcquire(1, g); err == nil && random.IntN(2) == 0 {
					p.Return()
				} else if err == nil && p.Use() {
					l.Settle(p.Cost(), g)
				}
				if l.Begin(ctx, 1, chat, g) == nil {
					if random.IntN(4) == 0 {
						l.Cancel(1, chat, g)
					} else {
						l.Settle(1, chat, g)
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.Zero(t, g.Stats().Pending)
	require.Zero(t, chats.Stats().Pending)
}

func TestPendingCallsDoNotAllocate(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	chats := newGates(t, l, ratelimit.Limit{Rate: ratelimit.MaxRate, Burst: 1000})
	g := newGate(t, l, "g", ratelimit.MaxRate, 1000)
	gates := []ratelimit.Gate{{}, g}
	key := uint64(0)
	allocs := testing.AllocsPerRun(10_000, func() {
		key++
		gates[0] = chats.Key(key % 100)
		if l.Begin(t.Context(), 1, gates...) != nil {
			t.Error("refused")
		}
		l.Settle(1, gates...)
	})
	require.Zero(t, allocs)
}
