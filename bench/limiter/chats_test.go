package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/clock"
	sethvargo "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

// chatRate and chatBurst are what the benchmarks below give each chat: 3 s to refill
// from empty, as 1 a second with a burst of 3 has, and never spent by a benchmark.
const (
	chatRate  = 10_000
	chatBurst = 3 * chatRate
)

// keyed is a limiter with a limit for each chat. take charges the i-th one.
type keyed struct {
	lib      string
	keyBytes int // what a key itself takes in a map: an int, or the header of a string
	new      func(tb testing.TB, names []string) (take func(i int) bool)
}

// names are keys for the libraries whose keys are texts. They are made beforehand:
// a bot has a chat's name at hand no more than we time it.
func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	return keys
}

func keyedLimiters() []keyed {
	return []keyed{
		{"xtime-syncmap", 8, func(testing.TB, []string) func(int) bool {
			var chats sync.Map
			return func(i int) bool {
				l, ok := chats.Load(i)
				if !ok {
					l, _ = chats.LoadOrStore(i, rate.NewLimiter(chatRate, chatBurst))
				}
				return l.(*rate.Limiter).Allow()
			}
		}},
		{"weir", 8, func(tb testing.TB, _ []string) func(int) bool {
			l := ratelimit.New(ratelimit.Options{})
			chats := newGates(tb, l, "chat", ratelimit.Limit{Rate: chatRate, Burst: chatBurst})
			return func(i int) bool { return l.Try(1, chats.Key(uint64(i))) == nil }
		}},
		{"throttled", 16, func(tb testing.TB, keys []string) func(int) bool {
			store, err := memstore.NewCtx(0) // without a bound on keys it needs no LRU, which is its faster form
			if err != nil {
				tb.Fatal(err)
			}
			l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(chatRate), MaxBurst: chatBurst - 1})
			if err != nil {
				tb.Fatal(err)
			}
			ctx := context.Background()
			return func(i int) bool {
				limited, _, err := l.RateLimitCtx(ctx, keys[i], 1)
				return err == nil && !limited
			}
		}},
		{"sethvargo", 16, func(tb testing.TB, keys []string) func(int) bool {
			store, err := memorystore.New(&memorystore.Config{Tokens: chatBurst, Interval: 3 * time.Second})
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { closeStore(tb, store) })
			ctx := context.Background()
			return func(i int) bool {
				_, _, _, ok, err := store.Take(ctx, keys[i])
				return err == nil && ok
			}
		}},
	}
}

func closeStore(tb testing.TB, s sethvargo.Store) {
	if err := s.Close(context.Background()); err != nil {
		tb.Error(err)
	}
}

// A random one of 100,000 chats, all of which are known already.
func BenchmarkChats100k(b *testing.B) {
	const chats = 100_000
	for _, k := range keyedLimiters() {
		b.Run("lib="+k.lib, func(b *testing.B) {
			take := warm(b, k, chats)
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				if !take(rng.IntN(chats)) {
					b.Fatal("refused")
				}
			}
		})
	}
}

// The same from all cores at once.
func BenchmarkChats100kParallel(b *testing.B) {
	const chats = 100_000
	for _, k := range keyedLimiters() {
		b.Run("lib="+k.lib, func(b *testing.B) {
			take := warm(b, k, chats)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 2))
				for pb.Next() {
					if !take(rng.IntN(chats)) {
						b.Error("refused")
					}
				}
			})
		})
	}
}

func warm(b *testing.B, k keyed, chats int) (take func(int) bool) {
	take = k.new(b, names(chats))
	for i := range chats {
		if !take(i) {
			b.Fatal("refused")
		}
	}
	return take
}

// manual is a clock that is moved by hand, to have a minute pass between two calls of
// each of a million chats. Its timers are the system's: nobody waits here.
type manual struct {
	clock.Clock
	now time.Time
}

func (m *manual) Now() time.Time { return m.now }

// reading is a manual clock that takes as long to read as the system's.
type reading struct {
	manual
	start time.Time
	read  time.Duration
}

func (r *reading) Now() time.Time {
	r.read = time.Since(r.start) // what the limiter reads of the system's clock
	return r.now
}

// id is the number of the i-th chat. Those of Telegram are spread over a wide range without
// order, and so are these: a table must not profit from numbers in a row.
func id(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// One of so many chats, each used once a minute and in turn: the time that an acquire
// takes should not depend on how many there are. The clock is moved by hand, or a minute
// of a million chats would take a minute.
//
// call=chat takes from the chat alone, and a reading of a real clock is not in its figures.
// call=chat+category+global is what a send takes, with a reading of the system's clock.
func BenchmarkOnceAMinute(b *testing.B) {
	kinds := []struct {
		name string
		rule ratelimit.Rule
	}{
		{"private", ratelimit.Limit{Rate: 1, Burst: 3}},
		{"group", ratelimit.Window{Limit: 20, Period: time.Minute}},
	}
	for _, kind := range kinds {
		for _, chats := range []int{1, 100, 10_000, 1_000_000} {
			step := time.Minute / time.Duration(chats)
			run := func(call string, use func(i int) error) {
				b.Run(fmt.Sprintf("call=%s/chat=%s/chats=%d", call, kind.name, chats), func(b *testing.B) {
					next := 0
					use := func() {
						if err := use(next); err != nil {
							b.Fatal(err)
						}
						if next++; next == chats {
							next = 0
						}
					}
					for range 2 * chats { // until memory is what it will be
						use()
					}
					b.ReportAllocs()
					for b.Loop() {
						use()
					}
				})
			}
			byHand := &manual{Clock: clock.System, now: time.Now()}
			l := ratelimit.New(ratelimit.Options{Clock: byHand})
			gates := newGates(b, l, "chat", kind.rule)
			run("chat", func(i int) error {
				byHand.now = byHand.now.Add(step)
				return l.Try(1, gates.Key(id(i)))
			})
			clk := &reading{manual: manual{Clock: clock.System, now: time.Now()}, start: time.Now()}
			send := ratelimit.New(ratelimit.Options{Clock: clk})
			chat := newGates(b, send, "chat", kind.rule)
			category, global := newGate(b, send, "category", open), newGate(b, send, "global", open)
			ctx := context.Background()
			run("chat+category+global", func(i int) error {
				clk.now = clk.now.Add(step)
				return send.Acquire(ctx, 1, chat.Key(id(i)), category, global)
			})
		}
	}
}

// slow is a limit that a benchmark never meets, and that takes 10 s to refill one token: a
// chat is live for so long after each call.
var slow = ratelimit.Limit{Rate: 0.1, Burst: 1 << 27}

// A random one of so many chats, on the real clock and all live, as fast as it goes:
// what is left is what the memory of the machine takes to find a chat.
func BenchmarkChatsScale(b *testing.B) {
	for _, chats := range []int{1, 100, 10_000, 1_000_000} {
		run := func(lib string, take func(i int) bool) {
			b.Run(fmt.Sprintf("chats=%d/lib=%s", chats, lib), func(b *testing.B) {
				for i := range chats {
					take(i)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					if !take(rng.IntN(chats)) {
						b.Fatal("refused")
					}
				}
			})
		}
		var m sync.Map
		run("xtime-syncmap", func(i int) bool {
			l, ok := m.Load(i)
			if !ok {
				l, _ = m.LoadOrStore(i, rate.NewLimiter(rate.Limit(slow.Rate), slow.Burst))
			}
			return l.(*rate.Limiter).Allow()
		})
		l := ratelimit.New(ratelimit.Options{})
		gates := newGates(b, l, "chat", slow)
		run("weir", func(i int) bool { return l.Try(1, gates.Key(uint64(i))) == nil })
	}
}
