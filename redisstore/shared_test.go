package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

func charge(gate string, rule ratelimit.Rule, cost int) ratelimit.Charge {
	return ratelimit.Charge{Gate: gate, Rule: rule, Cost: cost}
}

// perSecond is a bucket of which a token takes a whole number of microseconds.
func perSecond(rate float64, burst int) ratelimit.Limit {
	return ratelimit.Limit{Rate: rate, Burst: burst}
}

// everyRule is a bucket, and a window of each kind that holds as much in a period.
func everyRule(bucket ratelimit.Limit, period time.Duration) []ratelimit.Rule {
	rules := []ratelimit.Rule{bucket}
	for _, kind := range []ratelimit.WindowKind{ratelimit.Sliding, ratelimit.Aligned, ratelimit.FirstHit} {
		rules = append(rules, ratelimit.Window{Limit: bucket.Burst, Period: period, Kind: kind})
	}
	return rules
}

func take(t *testing.T, s *Store, charges ...ratelimit.Charge) (bool, []ratelimit.Found) {
	t.Helper()
	admitted, found, err := s.Take(context.Background(), charges)
	require.NoError(t, err)
	require.Len(t, found, len(charges))
	return admitted, found
}

func admitted(t *testing.T, s *Store, charges ...ratelimit.Charge) []ratelimit.Found {
	t.Helper()
	ok, found := take(t, s, charges...)
	require.True(t, ok, "refused: %+v", found)
	return found
}

func refused(t *testing.T, s *Store, charges ...ratelimit.Charge) []ratelimit.Found {
	t.Helper()
	ok, found := take(t, s, charges...)
	require.False(t, ok, "admitted: %+v", found)
	return found
}

func TestAllGatesAreChargedOrNone(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		chat := charge("chat", ratelimit.Window{Limit: 2, Period: time.Minute}, 1)
		category, global := charge("message", perSecond(1, 1), 1), charge("global", perSecond(10, 5), 2)
		require.Equal(t, []ratelimit.Found{
			{Used: ratelimit.Used{Count: 1}},
			{Used: ratelimit.Used{Refill: time.Second}},
			{Used: ratelimit.Used{Refill: 200 * time.Millisecond}},
		}, admitted(t, s, chat, category, global))

		w.advance(t, 100*time.Millisecond)
		require.Equal(t, []ratelimit.Found{
			{Used: ratelimit.Used{Count: 1}},
			{Used: ratelimit.Used{Refill: 900 * time.Millisecond}, Wait: 900 * time.Millisecond},
			{Used: ratelimit.Used{Refill: 100 * time.Millisecond}},
		}, refused(t, s, chat, category, global), "nothing was charged")

		w.advance(t, 900*time.Millisecond-time.Microsecond)
		require.Equal(t, time.Microsecond, refused(t, s, chat, category, global)[1].Wait, "not sooner")
		w.advance(t, time.Microsecond)
		admitted(t, s, chat, category, global)
		w.advance(t, time.Second)
		found := refused(t, s, chat, category, global)
		require.Equal(t, 58*time.Second, found[0].Wait, "the window's first call is a minute old then")
		require.Equal(t, 2, found[0].Used.Count)
	})
}

func TestKeysOfASetAreApart(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		c := charge("chat", perSecond(1, 1), 1)
		for _, key := range []uint64{0, 1, 11, 1 << 63, 1<<64 - 1} {
			c.Key = key
			admitted(t, s, c)
			refused(t, s, c)
		}
		for _, gate := range []string{"", "1", "1:chat", "a|b", "{}", "ü \x00\xff"} {
			admitted(t, s, charge(gate, perSecond(1, 1), 1))
			refused(t, s, charge(gate, perSecond(1, 1), 1))
		}
	})
}

func TestFixedWindowsTurn(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		w.set(t, w.time.Truncate(time.Hour).Add(time.Hour+40*time.Minute))
		aligned := charge("aligned", ratelimit.Window{Limit: 2, Period: time.Hour, Kind: ratelimit.Aligned}, 2)
		first := charge("first", ratelimit.Window{Limit: 2, Period: time.Hour, Kind: ratelimit.FirstHit}, 2)
		admitted(t, s, aligned, first)
		found := refused(t, s, aligned, first)
		require.Equal(t, 20*time.Minute, found[0].Wait)
		require.Equal(t, time.Hour, found[1].Wait)
		w.advance(t, 20*time.Minute)
		admitted(t, s, aligned)
		w.advance(t, 40*time.Minute)
		admitted(t, s, first)
		refused(t, s, aligned)
	})
}

func TestABucketThatChangesCarriesItsTokensOver(t *testing.T) {
	for _, c := range []struct {
		before, after ratelimit.Limit
		cost          int
		refill        time.Duration // after the cost and a look at the new rule, which costs one
	}{
		{perSecond(1, 10), perSecond(10, 10), 4, 500 * time.Millisecond},
		{perSecond(10, 10), perSecond(1, 10), 4, 5 * time.Second},
		{perSecond(1, 10), perSecond(1, 20), 4, 15 * time.Second},
		{perSecond(1, 20), perSecond(1, 10), 4, time.Second},
		{perSecond(1, 20), perSecond(1, 10), 18, 9 * time.Second},
		{perSecond(1, 20), perSecond(2, 10), 18, 4500 * time.Millisecond},
	} {
		everywhere(t, func(t *testing.T, w *world) {
			s := w.open(t)
			admitted(t, s, charge("g", c.before, c.cost))
			require.Equal(t, c.refill, admitted(t, s, charge("g", c.after, 1))[0].Used.Refill, "%v to %v", c.before, c.after)
		})
	}
}

func TestAGateOfAnotherKindStartsAnew(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		for _, rule := range []ratelimit.Rule{
			perSecond(1, 1), ratelimit.Window{Limit: 1, Period: time.Hour},
			ratelimit.Window{Limit: 1, Period: time.Hour, Kind: ratelimit.FirstHit}, perSecond(1, 1),
		} {
			admitted(t, s, charge("g", rule, 1))
			refused(t, s, charge("g", rule, 1))
		}
	})
}

func TestWindowsThatChangeKeepWhatCounts(t *testing.T) {
	for _, kind := range []ratelimit.WindowKind{ratelimit.Sliding, ratelimit.Aligned, ratelimit.FirstHit} {
		everywhere(t, func(t *testing.T, w *world) {
			s := w.open(t)
			w.set(t, w.time.Truncate(time.Hour).Add(2*time.Hour))
			admitted(t, s, charge("g", ratelimit.Window{Limit: 5, Period: time.Hour, Kind: kind}, 3))
			w.advance(t, time.Minute)
			longer := ratelimit.Window{Limit: 4, Period: 2 * time.Hour, Kind: kind}
			require.Equal(t, 3, refused(t, s, charge("g", longer, 2))[0].Used.Count)
			require.Equal(t, 4, admitted(t, s, charge("g", longer, 1))[0].Used.Count)
		})
	}
}

// A process that knows better than the server, since that has lost its data or the
// process was alone, is believed.
func TestNoBurstAfterDataWasLost(t *testing.T) {
	for _, rule := range everyRule(perSecond(1, 20), time.Minute) {
		everywhere(t, func(t *testing.T, w *world) {
			w.set(t, w.time.Truncate(time.Minute).Add(time.Minute))
			s, other := w.open(t), w.open(t)
			full := charge("g", rule, 1)
			full.Used = ratelimit.Used{Refill: 20 * time.Second, Count: 20}
			require.Positive(t, refused(t, s, full)[0].Wait)
			require.Positive(t, refused(t, other, charge("g", rule, 1))[0].Wait, "now all know")

			// Another process was admitted first.
			half := charge("h", rule, 1)
			admitted(t, other, half)
			half.Used = ratelimit.Used{Refill: 19 * time.Second, Count: 19}
			admitted(t, s, half)
			half.Used = ratelimit.Used{}
			refused(t, other, half)
		})
	}
}

// What a process heard from the server, it says a little late. That must not add up.
func TestWhatAProcessHeardIsNotChargedAgain(t *testing.T) {
	const late = time.Millisecond // there and back
	for _, rule := range everyRule(perSecond(10, 5), 500*time.Millisecond) {
		everywhere(t, func(t *testing.T, w *world) {
			w.set(t, w.time.Truncate(time.Second).Add(time.Second))
			stores := []*Store{w.open(t), w.open(t)}
			var heard [2]ratelimit.Used
			var at [2]time.Time
			begin, n := w.time, 0
			for i := 0; w.time.Sub(begin) < 8*time.Second; i = 1 - i {
				c := charge("g", rule, 1)
				c.Used.Refill = max(0, heard[i].Refill-w.time.Sub(at[i])+2*late)
				if w.time.Sub(at[i]) < 500*time.Millisecond+2*late {
					c.Used.Count = heard[i].Count
				}
				stores[i].lag.Store(int64(2 * late))
				ok, found := take(t, stores[i], c)
				if ok {
					n++
				}
				heard[i], at[i] = found[0].Used, w.time
				w.advance(t, 7*time.Millisecond)
			}
			require.InDelta(t, 85, n, 5, "%v", rule)
		})
	}
}

func TestGiveBack(t *testing.T) {
	for _, rule := range everyRule(perSecond(1, 4), time.Minute) {
		everywhere(t, func(t *testing.T, w *world) {
			ctx := context.Background()
			w.set(t, w.time.Truncate(time.Minute).Add(time.Minute))
			s, other := w.open(t), w.open(t)
			c := charge("g", rule, 2)
			admitted(t, s, c)
			admitted(t, other, c)
			refused(t, s, c)
			require.NoError(t, s.GiveBack(ctx, []ratelimit.Charge{c}))
			require.NoError(t, s.GiveBack(ctx, []ratelimit.Charge{c}), "twice is once")
			admitted(t, s, c)
			refused(t, other, c)

			w.advance(t, 5*time.Minute)
			require.NoError(t, s.GiveBack(ctx, []ratelimit.Charge{c}), "too late")
			require.Equal(t, 4, func() (n int) {
				for ok := true; ok; n++ {
					ok, _ = take(t, s, charge("g", rule, 1))
				}
				return n - 1
			}(), "never more than full")
		})
	}
}

func TestABucketGetsBackWhatTimeHasNotGiven(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s, other := w.open(t), w.open(t)
		c := charge("g", perSecond(1, 1), 1)
		admitted(t, s, c)
		w.advance(t, time.Second)
		admitted(t, other, c)
		require.NoError(t, s.GiveBack(context.Background(), []ratelimit.Charge{c}))
		require.Equal(t, time.Second, refused(t, s, c)[0].Wait, "the other's token is not given back")
	})
}

func TestProcessesTakeTurns(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.open(t), w.open(t)
		c := charge("g", perSecond(10, 1), 1)
		admitted(t, a, c)
		require.Equal(t, 100*time.Millisecond, refused(t, b, c)[0].Wait)
		require.Equal(t, 200*time.Millisecond, refused(t, a, c)[0].Wait, "b is ahead")
		require.Equal(t, 200*time.Millisecond, refused(t, a, c)[0].Wait, "the claim is the process's, however often it asks")
		w.advance(t, 101*time.Millisecond)
		refused(t, a, c)
		admitted(t, b, c)
		refused(t, b, c)
		w.advance(t, 100*time.Millisecond)
		admitted(t, a, c)
	})
}

func TestAClaimLapses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.open(t), w.open(t)
		c := charge("g", ratelimit.Window{Limit: 1, Period: time.Minute}, 1)
		admitted(t, a, c)
		refused(t, b, c) // and is not seen again
		wait := refused(t, a, c)[0].Wait
		require.Equal(t, time.Minute+100*time.Millisecond+time.Microsecond, wait, "until b's claim has lapsed, and no minute longer")
		w.advance(t, wait-time.Microsecond)
		refused(t, a, c)
		w.advance(t, time.Microsecond)
		admitted(t, a, c)
	})
}

func TestChargesThatCannotBe(t *testing.T) {
	w := mini(t)
	s := w.open(t)
	good := charge("good", perSecond(1, 5), 1)
	for field, c := range map[string]ratelimit.Charge{
		"charges[1].rule":      charge("g", nil, 1),
		"charges[1].rule ":     charge("g", perSecond(0, 5), 1),
		"charges[1].rule  ":    charge("g", perSecond(-1, 5), 1),
		"charges[1].rule    ":  charge("g", ratelimit.Window{Limit: 5}, 1),
		"charges[1].cost":      charge("g", perSecond(1, 5), 0),
		"charges[1].cost ":     charge("g", perSecond(1e-6, 5), 1001),
		"charges[1].cost    ":  charge("g", ratelimit.Window{Limit: 5, Period: time.Second}, 1001),
		"charges[1].gate":      good,
		"charges[1].rule     ": charge("g", ratelimit.Window{Limit: 5, Period: time.Second, Kind: 9}, 1),
	} {
		_, _, err := s.Take(context.Background(), []ratelimit.Charge{good, c})
		var argument *store.ArgumentError
		require.ErrorAs(t, err, &argument)
		require.Equal(t, strings.TrimSpace(field), argument.Field)
		require.NotErrorIs(t, err, store.ErrUnavailable)
	}
	require.Empty(t, w.keys(t))
}

// An album counts for more than the gate of its chat holds.
func TestAlbumIsChargedWholeForAllProcesses(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.open(t), w.open(t)
		bucket := perSecond(1, 3)
		admitted(t, a, charge("chat", bucket, 1))
		require.Equal(t, time.Second, refused(t, a, charge("chat", bucket, 10))[0].Wait, "until it is full")
		w.advance(t, time.Second)
		admitted(t, a, charge("chat", bucket, 10))
		require.Equal(t, 8*time.Second, refused(t, b, charge("chat", bucket, 1))[0].Wait, "seven are owed, one is to come")
		w.advance(t, 8*time.Second-time.Microsecond)
		refused(t, b, charge("chat", bucket, 1))
		w.advance(t, time.Microsecond)
		admitted(t, b, charge("chat", bucket, 1))

		for _, rule := range everyRule(perSecond(4, 4), time.Second) {
			name := rule.String()
			admitted(t, a, charge(name, rule, 16))
			require.LessOrEqual(t, refused(t, b, charge(name, rule, 4))[0].Wait, 4*time.Second)
			w.advance(t, 4*time.Second)
			admitted(t, b, charge(name, rule, 4))
		}

		admitted(t, a, charge("changed", bucket, 10))
		require.Equal(t, 4*time.Second, refused(t, b, charge("changed", perSecond(2, 3), 1))[0].Wait, "a change of the limit forgives no debt")
	})
}

func TestClockSetBackNeitherLocksNorRefills(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		bucket := charge("bucket", perSecond(1, 10), 10)
		window := charge("window", ratelimit.Window{Limit: 10, Period: 10 * time.Second}, 10)
		admitted(t, s, bucket, window)
		w.advance(t, -24*time.Hour)
		for _, found := range refused(t, s, bucket, window) {
			require.Equal(t, 10*time.Second, found.Wait)
		}
		w.advance(t, 10*time.Second-time.Microsecond)
		refused(t, s, bucket, window)
		w.advance(t, time.Microsecond)
		admitted(t, s, bucket, window)
	})
}

func TestAllKeysExpireAndLieInOneSlot(t *testing.T) {
	w := mini(t)
	s := w.open(t)
	ctx := context.Background()
	everything(t, s)
	refused(t, w.open(t), charge("bucket", perSecond(1, 10), 10))
	keys := w.keys(t)
	require.Len(t, keys, 11, "%q", keys)
	for _, key := range keys {
		require.True(t, strings.HasPrefix(key, "weir:{"+w.account+"}:"), key)
		ttl := w.mini.TTL(key)
		require.True(t, ttl > 0 && ttl <= 2*time.Hour, "%s lives for %v", key, ttl)
	}
	w.advance(t, 2*time.Hour)
	require.Empty(t, w.keys(t))
	require.NoError(t, s.GiveBack(ctx, []ratelimit.Charge{charge("bucket", perSecond(1, 10), 10)}))
	for _, key := range w.keys(t) {
		require.Positive(t, w.mini.TTL(key), key)
	}
}

// everything writes each sort of key that there is.
func everything(t *testing.T, s *Store) {
	t.Helper()
	window := func(k ratelimit.WindowKind) ratelimit.Charge {
		return charge(fmt.Sprint(k), ratelimit.Window{Limit: 10, Period: time.Hour, Kind: k}, 1)
	}
	admitted(t, s, charge("bucket", perSecond(1, 10), 10), window(ratelimit.Sliding), window(ratelimit.Aligned), window(ratelimit.FirstHit))
	for _, r := range requests() {
		_, err := s.Decide(context.Background(), r)
		require.NoError(t, err)
	}
	require.NoError(t, s.Save(context.Background(), store.Fact{Key: "f", Value: []byte("v"), Until: time.Now().Add(time.Hour)}))
}
