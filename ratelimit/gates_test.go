package ratelimit_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/ratelimit"
)

func newGates(t testing.TB, l *ratelimit.Limiter, rule ratelimit.Rule) *ratelimit.Gates {
	t.Helper()
	gates, err := l.NewGates("chat", rule)
	require.NoError(t, err)
	return gates
}

func TestChatsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3})
		global := newGate(t, l, "global", 1000, 1000)
		start := time.Now()
		var wg sync.WaitGroup
		for chat := range uint64(100) {
			for range 5 {
				wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, chats.Key(chat), global)) })
			}
		}
		synctest.Wait()
		stats := chats.Stats()
		require.Equal(t, 200, stats.Waiters)
		require.Equal(t, 100, stats.Live)
		require.Zero(t, global.Stats().Waiters, "who waits for its chat holds nothing else")
		wg.Wait()
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestIdleChatsAreForgotten(t *testing.T) {
	for _, rule := range []ratelimit.Rule{
		ratelimit.Limit{Rate: 1, Burst: 3},
		ratelimit.Window{Limit: 3, Period: 3 * time.Second},
	} {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				chats := newGates(t, l, rule)
				for chat := range uint64(10_000) {
					require.NoError(t, l.Try(1, chats.Key(chat)))
				}
				require.Equal(t, 10_000, chats.Stats().Live)
				time.Sleep(7 * time.Second)
				require.Zero(t, chats.Stats().Live)
			})
		})
	}
}

// A set of gates forgets; one gate for each key, made by hand, does not. Both have to
// give the same answers.
func TestForgettingChangesNoAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]ratelimit.Rule{
			ratelimit.Limit{Rate: 1, Burst: 3},
			ratelimit.Limit{Rate: 7, Burst: 1},
			ratelimit.Window{Limit: 3, Period: 2 * time.Second},
			ratelimit.Window{Limit: 2, Period: time.Second, Kind: ratelimit.FirstHit},
			ratelimit.Window{Limit: 2, Period: time.Second, Kind: ratelimit.Aligned},
		}).Draw(t, "rule")
		type step struct {
			key    uint64
			cost   int
			refund bool
			pause  time.Duration
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				key:    rapid.Uint64Range(0, 5).Draw(t, "key"),
				cost:   rapid.IntRange(1, 2).Draw(t, "cost"),
				refund: rapid.IntRange(0, 9).Draw(t, "refund") == 0,
				pause:  time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond,
			}
		}), 1, 200).Draw(t, "steps")
		rapid.SyncTest(t, func(t *rapid.T) {
			l := ratelimit.New(ratelimit.Options{})
			set, err := l.NewGates("set", rule)
			if err != nil {
				t.Fatal(err)
			}
			var apart []ratelimit.Gate
			for range 6 {
				g, err := l.NewGate("apart", rule)
				if err != nil {
					t.Fatal(err)
				}
				apart = append(apart, g)
			}
			for i, s := range steps {
				time.Sleep(s.pause)
				one, other := l.Try(s.cost, set.Key(s.key)), l.Try(s.cost, apart[s.key])
				if (one == nil) != (other == nil) {
					t.Fatalf("step %d: %v in the set, %v apart", i, one, other)
				}
				if s.refund && one == nil {
					l.Refund(s.cost, set.Key(s.key), apart[s.key])
				}
			}
		})
	})
}

func TestSetIsUpdatedAsAWholeUnderItsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 0.001, Burst: 1})
		var wg sync.WaitGroup
		for chat := range uint64(10) {
			require.NoError(t, l.Try(1, chats.Key(chat)))
			wg.Go(func() { assert.NoError(t, l.Acquire(t.Context(), 1, chats.Key(chat))) })
		}
		require.NoError(t, l.Try(1, chats.Key(99)))
		synctest.Wait()
		start := time.Now()
		update(t, l, chats.Set(), ratelimit.Rate(1))
		wg.Wait()
		require.LessOrEqual(t, time.Since(start), time.Second)
		require.NoError(t, l.Try(1, chats.Key(99)), "one without waiters has refilled by the new rate too")
	})
}

func TestLoweredLimitIsNotForgottenTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 10, Burst: 1})
		require.NoError(t, l.Try(1, chats.Key(1)))
		update(t, l, chats.Set(), ratelimit.Rate(0.1))
		time.Sleep(5 * time.Second)
		require.NoError(t, l.Try(1, chats.Key(2)))
		require.Error(t, l.Try(1, chats.Key(1)))
	})
}

func TestInventedKeysCostBoundedMemoryAndGetNoMoreThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		users := newGates(t, l, ratelimit.Window{Limit: 1, Period: 24 * time.Hour})
		known := users.Key(l.Key("known"))
		require.NoError(t, l.Try(1, known))
		for key := range uint64(ratelimit.DefaultMaxKeys + 100_000) {
			_ = l.Try(1, users.Key(key<<20))
		}
		require.LessOrEqual(t, users.Stats().Live, ratelimit.DefaultMaxKeys+1000)
		require.Error(t, l.Try(1, known))
		require.Error(t, l.Try(1, users.Key(1<<63)), "a stranger shares a gate that is spent")
		time.Sleep(48 * time.Hour)
		for range 20_000 { // the crowd has gone: it is forgotten as calls come
			_ = l.Try(1, known)
		}
		for key := range uint64(1000) {
			require.NoError(t, l.Try(1, users.Key(1<<62+key)), "nobody shares a gate any more")
		}
		require.Less(t, users.Stats().Live, 2000)
	})
}

func TestLongTextsMakeShortKeys(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	long := strings.Repeat("x", 1<<20)
	require.Equal(t, l.Key(long), l.Key(long))
	require.NotEqual(t, l.Key(long), l.Key(long+"y"))
	require.NotEqual(t, ratelimit.New(ratelimit.Options{}).Key(long), l.Key(long), "nobody can aim at another's gate")
}

func TestCancelledChatWaitersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for chat := range uint64(1000) {
			require.NoError(t, l.Try(1, chats.Key(chat)))
			wg.Go(func() { assert.ErrorIs(t, l.Acquire(ctx, 1, chats.Key(chat)), context.Canceled) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		require.Zero(t, chats.Stats().Waiters)
		time.Sleep(time.Second)
		require.NoError(t, l.Try(1, chats.Key(5)), "they took nothing")
		l.Close()
		require.ErrorIs(t, l.Acquire(t.Context(), 1, chats.Key(5)), ratelimit.ErrClosed)
	})
}

func TestCloseAnswersWaitersOfEveryChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chats := newGates(t, l, ratelimit.Limit{Rate: 0.01, Burst: 1})
		var wg sync.WaitGroup
		for chat := range uint64(100) {
			require.NoError(t, l.Try(1, chats.Key(chat)))
			wg.Go(func() { assert.ErrorIs(t, l.AcquireBackground(t.Context(), 1, chats.Key(chat)), ratelimit.ErrClosed) })
		}
		synctest.Wait()
		l.Close()
		wg.Wait()
	})
}

func TestTokensAreInheritedAsNamed(t *testing.T) {
	for how, want := range map[ratelimit.Inheritance]float64{
		ratelimit.AsIs:  4,
		ratelimit.Empty: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := ratelimit.New(ratelimit.Options{})
			g := newGate(t, l, "g", 10, 10)
			require.NoError(t, l.Try(6, g))
			update(t, l, g, ratelimit.Rate(5).Burst(20).Inherit(how))
			require.InDelta(t, want, g.Stats().Tokens, 1e-6, "%d", how)
			update(t, l, g, ratelimit.Burst(1).Inherit(how))
			require.LessOrEqual(t, g.Stats().Tokens, 1.0)
			require.GreaterOrEqual(t, g.Stats().Tokens, 0.0)
		})
	}
}

func TestBucketsAreEmptiedUnderTheirRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		single, paused := newGate(t, l, "single", 10, 10), newGate(t, l, "paused", 0, 10)
		set := newGates(t, l, ratelimit.Limit{Rate: 10, Burst: 10})
		require.NoError(t, l.Try(1, set.Key(1)))
		empty := ratelimit.Change{}.Inherit(ratelimit.Empty)
		update(t, l, paused, empty)
		for _, g := range []ratelimit.Gate{single, set.Key(1), set.Key(2)} {
			update(t, l, single, empty)
			update(t, l, set.Set(), empty)
			require.Zero(t, g.Stats().Tokens)
			require.Equal(t, ratelimit.Limit{Rate: 10, Burst: 10}, g.Stats().Limit)
			start := time.Now()
			require.NoError(t, l.Acquire(t.Context(), 1, g))
			require.Equal(t, 100*time.Millisecond, time.Since(start))
		}
		update(t, l, paused, ratelimit.Rate(10))
		require.Zero(t, paused.Stats().Tokens, "the pause has not refilled it")

		time.Sleep(time.Second)
		drain(t, l, single)
		start := time.Now()
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, single) }()
		time.Sleep(60 * time.Millisecond)
		update(t, l, single, empty)
		require.NoError(t, <-done)
		require.Equal(t, 160*time.Millisecond, time.Since(start), "the head reckons again")

		window := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Minute})
		var bad *ratelimit.LimitError
		require.ErrorAs(t, l.Update(map[ratelimit.Gate]ratelimit.Change{window: empty}), &bad)
		require.Contains(t, bad.Error(), "want AsIs")
	})
}

func TestForwardOfManyMessagesCountsForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat := newGates(t, l, ratelimit.Window{Limit: 20, Period: time.Minute}).Key(1)
		message := newGate(t, l, "message", 10, 10)
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, chat.Times(15), message))
		require.Equal(t, 5.0, chat.Stats().Tokens)
		require.Equal(t, 9.0, message.Stats().Tokens)
		require.NoError(t, l.Acquire(t.Context(), 1, chat.Times(6), message))
		require.Equal(t, time.Minute, time.Since(start))
		l.Refund(1, chat.Times(6), message)
		require.NoError(t, l.Acquire(t.Context(), 1, chat.Times(1000), message))
		require.Equal(t, time.Minute, time.Since(start), "which goes when the window is empty")
		require.NoError(t, l.Acquire(t.Context(), 1, chat))
		require.Equal(t, 2*time.Minute, time.Since(start), "and leaves it whole after a period")
	})
}

// What counts for more than a gate holds.
func TestAlbumGoesWhenTheBucketIsFullAndIsChargedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat := newGates(t, l, ratelimit.Limit{Rate: 1, Burst: 3}).Key(1)
		album := chat.Times(10)
		start := time.Now()
		at := func(want time.Duration, g ratelimit.Gate) {
			t.Helper()
			require.NoError(t, l.Acquire(t.Context(), 1, g))
			require.Equal(t, want, time.Since(start))
		}
		at(0, chat)
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, l.Try(1, album), &refused)
		require.Equal(t, time.Second, refused.Wait, "until the bucket is full")
		require.Equal(t, 10, refused.Cost)
		at(time.Second, album)
		require.ErrorAs(t, l.Try(1, chat), &refused)
		require.Equal(t, 8*time.Second, refused.Wait, "three were there, seven are owed, one is to come")
		require.Zero(t, chat.Stats().Tokens)
		at(9*time.Second, chat)
		for i := range 5 {
			at(time.Duration(12+10*i)*time.Second, album)
		}

		require.ErrorIs(t, l.Acquire(t.Context(), 4, chat), ratelimit.ErrImpossible, "a cost is no weight")
		require.ErrorIs(t, l.Acquire(t.Context(), 4, album), ratelimit.ErrImpossible)
	})
}

func TestAlbumsAheadAreCountedWholeInTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		chat, group := newGate(t, l, "chat", 1, 3), newWindow(t, l, ratelimit.Window{Limit: 4, Period: time.Minute})
		for g, want := range map[ratelimit.Gate]time.Duration{chat: 28 * time.Second, group: 3 * time.Minute} {
			ctx, cancel := context.WithCancel(t.Context())
			for range 3 {
				go func() { _ = l.Acquire(ctx, 1, g.Times(10)) }()
			}
			synctest.Wait()
			start := time.Now()
			short, stop := context.WithTimeout(t.Context(), time.Second)
			var refused *ratelimit.RefusedError
			require.ErrorAs(t, l.Acquire(short, 1, g), &refused)
			require.Equal(t, want, refused.Wait)
			require.NoError(t, l.Acquire(t.Context(), 1, g))
			require.Equal(t, want, time.Since(start), "as it was told")
			stop()
			cancel()
		}
	})
}

func TestDebtOfABucketOutlivesAChangeOfItsLimit(t *testing.T) {
	for name, change := range map[string]ratelimit.Change{
		"twice the rate": ratelimit.Rate(2), "half the rate": ratelimit.Rate(0.5), "a larger burst": ratelimit.Burst(30),
		"a smaller burst": ratelimit.Burst(1), "a pause": ratelimit.Rate(0),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				g := newGate(t, l, "g", 1, 3)
				require.NoError(t, l.Acquire(t.Context(), 1, g.Times(10))) // seven are owed
				update(t, l, g, change)
				time.Sleep(time.Hour)
				update(t, l, g, ratelimit.To(ratelimit.Limit{Rate: 1, Burst: 3}))
				tokens := g.Stats().Tokens
				if name == "a pause" {
					require.Zero(t, tokens)
					start := time.Now()
					require.NoError(t, l.Acquire(t.Context(), 1, g))
					require.Equal(t, 8*time.Second, time.Since(start))
					return
				}
				require.Positive(t, tokens)

				require.NoError(t, l.Acquire(t.Context(), 1, g.Times(10)))
				update(t, l, g, change)
				rate := g.Stats().Limit.Rate
				start := time.Now()
				require.NoError(t, l.Acquire(t.Context(), 1, g))
				require.InDelta(t, 8/rate, time.Since(start).Seconds(), 1e-6, "seven are owed still")
			})
		})
	}
}

func TestPermitOfAnAlbumGivesAllOfItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		for _, rule := range []ratelimit.Rule{
			ratelimit.Limit{Rate: 1, Burst: 3}, ratelimit.Window{Limit: 3, Period: time.Minute},
			ratelimit.Window{Limit: 3, Period: time.Minute, Kind: ratelimit.Aligned}, ratelimit.Window{Limit: 3, Period: time.Minute, Kind: ratelimit.FirstHit},
		} {
			g := newGates(t, l, rule).Key(1)
			p, err := l.TryAcquire(1, g.Times(10))
			require.NoError(t, err)
			require.Error(t, l.Try(1, g))
			p.Return()
			require.NoError(t, l.Try(3, g), "%v", rule)
		}
	})
}
