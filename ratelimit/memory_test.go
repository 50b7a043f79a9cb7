package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The memory is held against a map that forgets nothing. What still counts has to be there.
func TestMemoryKeepsWhatCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m memory
		model, now := map[uint64]int64{}, int64(1)
		key := rapid.Uint64Range(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, full := key.Draw(t, "key"), now+rapid.Int64Range(0, 100).Draw(t, "until")
				before := m.young.len()
				grew := m.put(k, state{full: full}, full)
				require.Equal(t, m.young.len() > before, grew)
				model[k] = full
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				m.remove(k)
				delete(model, k)
			},
			"pass": func(t *rapid.T) { now += rapid.Int64Range(0, 50).Draw(t, "time") },
			"age":  func(t *rapid.T) { m.age(now) },
			"change": func(t *rapid.T) {
				later := rapid.Int64Range(0, 100).Draw(t, "later")
				next := func(s state) state { return state{full: s.full + later} }
				m.change(next, func(s state) int64 { return s.full })
				for k, full := range model {
					if _, ok := m.get(k); ok {
						model[k] = full + later
					} else {
						delete(model, k)
					}
				}
			},
			"": func(t *rapid.T) {
				require.LessOrEqual(t, m.len(), len(model), "none is counted twice")
				for k := range uint64(21) {
					s, ok := m.get(k)
					full, known := model[k]
					if ok {
						require.True(t, known)
						require.Equal(t, full, s.full)
					} else if known {
						require.LessOrEqual(t, full, now, "it counted until then")
					}
				}
			},
		})
	})
}

// A bot that writes to 100 new people a second, for ten minutes. A message counts for a second.
func TestChatsThatAreDoneWithAreForgotten(t *testing.T) {
	for _, rule := range []Rule{
		Limit{Rate: 1, Burst: 3}, Window{Limit: 20, Period: time.Second},
		Window{Limit: 20, Period: time.Second, Kind: Aligned}, Window{Limit: 20, Period: time.Second, Kind: FirstHit},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Options{})
			chats, err := l.NewGates("chat", rule)
			require.NoError(t, err)
			most := 0
			for i := range uint64(60_000) {
				require.NoError(t, l.Try(1, chats.Key(i)))
				most = max(most, chats.set.remembered())
				time.Sleep(10 * time.Millisecond)
			}
			require.LessOrEqual(t, most, 3*minYoung, "%v", rule)
			time.Sleep(time.Minute)
			require.Zero(t, chats.Stats().Live)
		})
	}
}

// A chat that never rests does not keep the memory of others.
func TestOneBusyChatKeepsNoOtherInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		chats, err := l.NewGates("chat", Limit{Rate: 1, Burst: 3})
		require.NoError(t, err)
		for i := range uint64(10_000) {
			require.NoError(t, l.Try(1, chats.Key(1000+i)))
		}
		for i := range uint64(2000) {
			require.NoError(t, l.Acquire(t.Context(), 1, chats.Key(0)))
			require.NoError(t, l.Try(1, chats.Key(1_000_000+i)))
		}
		require.LessOrEqual(t, chats.set.remembered(), 3*minYoung)
	})
}

// The time of a token is rounded up: rounded down, a bucket would let through more than its
// rate.
func TestTokenIsNotThereANanosecondTooSoon(t *testing.T) {
	for rate, interval := range map[float64]time.Duration{3: 333_333_334, 7: 142_857_143, 0.3: 3_333_333_334, 30: 33_333_334, 3e8: 4, 10: 100_000_000} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Options{})
			g, err := l.NewGate("g", Limit{Rate: rate, Burst: 1})
			require.NoError(t, err)
			require.NoError(t, l.Try(1, g))
			time.Sleep(interval - 1)
			require.Error(t, l.Try(1, g), "%v/s after %v", rate, interval-1)
			time.Sleep(time.Nanosecond)
			require.NoError(t, l.Try(1, g), "%v/s after %v", rate, interval)
		})
	}
}

// BenchmarkGrowToAMillion reports the longest of the calls that bring a set from none to a
// million gates, each of them new.
func BenchmarkGrowToAMillion(b *testing.B) {
	const chats = 1_000_000
	for range b.N {
		l := New(Options{})
		gates, err := l.NewGates("chat", Limit{Rate: 0.001, Burst: 3})
		if err != nil {
			b.Fatal(err)
		}
		longest := time.Duration(0)
		for i := range uint64(chats) {
			start := time.Now()
			if err := l.Try(1, gates.Key(i*0x9e3779b97f4a7c15)); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(start))
		}
		b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	}
}
