package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// stuck is a memory that can be made to fail or to hang as long as it may, and whose Watch
// outlasts that, as that of a real store does.
type stuck struct {
	*disk
	mu    sync.Mutex
	hangs bool
	fails bool
}

func (s *stuck) set(hangs, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.fails = hangs, fails
}

func (s *stuck) trouble(ctx context.Context) error {
	s.mu.Lock()
	hangs, fails := s.hangs, s.fails
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return fmt.Errorf("stuck: %w", ctx.Err())
	}
	if fails {
		return fmt.Errorf("stuck: %w", store.ErrUnavailable)
	}
	return nil
}

func (s *stuck) Load(ctx context.Context) ([]store.Fact, error) {
	if err := s.trouble(ctx); err != nil {
		return nil, err
	}
	return s.disk.Load(ctx)
}

func (s *stuck) Save(ctx context.Context, facts ...store.Fact) error {
	if err := s.trouble(ctx); err != nil {
		return err
	}
	return s.disk.Save(ctx, facts...)
}

func limitsOf(limiter *invoke.Limiter, c classify.Category) ratelimit.Limit {
	return limiter.Stats()[c].Limit
}

func TestStoreThatFailsUnderAWatchThatLastsIsCaughtUpWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := &stuck{disk: newDisk()}, &recorder{}
		_, call := process(t, invoke.Options{Store: d, Observer: ofLimiter(r.Observe)}, floods(1, "FLOOD_WAIT_3600"))
		synctest.Wait()
		d.set(false, true)
		requireWait(t, call(t.Context(), to(1)))
		time.Sleep(time.Minute)
		d.set(false, false)
		time.Sleep(10 * time.Second)
		require.Len(t, d.keys(), 1, "saved though no other call had anything to save")
		require.Equal(t, []string{"store lost", "store back"}, r.kinds())
	})
}

func TestStoreThatHangsSlowsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stuck{disk: newDisk()}
		s, _ := limited(10, 10)
		_, call := process(t, invoke.Options{Store: d}, s)
		work(t, call, time.Minute)
		d.set(true, false)
		work(t, call, 10*time.Second)
		sent := work(t, call, time.Minute)
		require.GreaterOrEqual(t, sent, 500, "the server takes 600")
	})
}

func TestCloseSavesWhatAStoreHasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stuck{disk: newDisk()}
		limiter, call := process(t, invoke.Options{Store: d}, floods(1, "FLOOD_WAIT_3600"))
		synctest.Wait()
		d.set(false, true)
		requireWait(t, call(t.Context(), to(1)))
		d.set(false, false)
		limiter.Close()
		require.Len(t, d.keys(), 1)
	})
}

// Nothing of the limiter runs once Close has returned, whatever it was about when it was
// called, and a store that hangs delays it by two seconds.
func TestNothingRunsAfterClose(t *testing.T) {
	for name, trouble := range map[string]func(d *stuck, gates *faulty){
		"none":                  func(*stuck, *faulty) {},
		"a store that hangs":    func(d *stuck, _ *faulty) { d.set(true, false) },
		"a store that fails":    func(d *stuck, _ *faulty) { d.set(false, true) },
		"a watch that is ended": func(d *stuck, _ *faulty) { d.setDown(true) },
		"gates that are lost":   func(_ *stuck, gates *faulty) { gates.fail(true) },
	} {
		for _, after := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, gates := &stuck{disk: newDisk()}, &faulty{}
					var running, closed atomic.Bool
					limiter, call := process(t, invoke.Options{
						Store: both{d, gates}, OnFailure: store.FailLocal,
						Observer: ofLimiter(func(invoke.Event) {
							if closed.Load() {
								t.Error("told after the end")
							}
							running.Store(true)
							time.Sleep(time.Second)
							running.Store(false)
						}),
					}, floods(1, "FLOOD_WAIT_3600"))
					synctest.Wait()
					trouble(d, gates)
					go func() { _ = call(t.Context(), to(1)) }()
					time.Sleep(after)
					start := time.Now()
					limiter.Close()
					closed.Store(true)
					require.False(t, running.Load(), "the observer")
					require.LessOrEqual(t, time.Since(start), 4*time.Second)
					time.Sleep(time.Minute)
				})
			})
		}
	}
}

// Each of the things that an observer may want to do when the store is lost.
func TestObserverThatCallsTheLimiterWhenTheStoreIsLost(t *testing.T) {
	for name, do := range map[string]func(*invoke.Limiter, func(context.Context, bin.Encoder) error){
		"update": func(l *invoke.Limiter, _ func(context.Context, bin.Encoder) error) {
			_ = l.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(3)})
		},
		"clear": func(l *invoke.Limiter, _ func(context.Context, bin.Encoder) error) {
			l.ClearFloods(nil)
			l.ClearRefusals(nil)
		},
		"close": func(l *invoke.Limiter, _ func(context.Context, bin.Encoder) error) { l.Close() },
		"call": func(_ *invoke.Limiter, call func(context.Context, bin.Encoder) error) {
			_ = call(context.Background(), to(7))
		},
	} {
		for _, source := range []string{"save", "watch", "gates"} {
			t.Run(name+" "+source, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &stuck{disk: newDisk()}
					gates := &faulty{}
					var limiter *invoke.Limiter
					var call func(context.Context, bin.Encoder) error
					done := make(chan struct{}, 10)
					limiter, call = process(t, invoke.Options{
						Store: both{d, gates}, OnFailure: store.FailLocal,
						Observer: invoke.ObserverFunc(func(e invoke.Event) {
							if e.Kind == invoke.StoreLost {
								do(limiter, call)
								done <- struct{}{}
							}
						}),
					}, floods(1, "FLOOD_WAIT_3600"))
					synctest.Wait()
					switch source {
					case "save":
						d.set(false, true)
						_ = call(t.Context(), to(1))
					case "watch":
						d.setDown(true)
					case "gates":
						gates.fail(true)
						_ = call(t.Context(), to(1))
					}
					select {
					case <-done:
					case <-time.After(time.Minute):
						t.Fatal("it hangs")
					}
					limiter.Close()
				})
			})
		}
	}
}

// counting are gates that no other process uses.
type counting struct{ alone }

func (counting) Take(_ context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	found := make([]ratelimit.Found, len(charges))
	for i, c := range charges {
		found[i].Used = c.Used
		found[i].Used.Count += c.Cost
		if rule, ok := c.Rule.(ratelimit.Limit); ok {
			found[i].Used.Refill += time.Duration(float64(c.Cost) / rule.Rate * float64(time.Second))
		}
	}
	return true, found, nil
}

// faulty are shared gates that are there, or not.
type faulty struct {
	alone
	mu   sync.Mutex
	down bool
}

func (f *faulty) fail(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *faulty) Take(ctx context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return false, nil, store.ErrUnavailable
	}
	return f.alone.Take(ctx, charges)
}

func TestOneOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, gates, r := &stuck{disk: newDisk()}, &faulty{}, &recorder{}
		_, call := process(t, invoke.Options{Store: both{d, gates}, OnFailure: store.FailLocal, Observer: ofLimiter(r.Observe)}, floods(1, "FLOOD_WAIT_9"))
		d.set(false, true)
		gates.fail(true)
		require.NoError(t, call(t.Context(), to(1)))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"store lost"}, slices.DeleteFunc(r.kinds(), func(s string) bool { return s == "learned" }))
		d.set(false, false)
		gates.fail(false)
		time.Sleep(time.Minute)
		require.NoError(t, call(t.Context(), to(1)))
		synctest.Wait()
		require.Equal(t, []string{"store lost", "store back"}, slices.DeleteFunc(r.kinds(), func(s string) bool { return s == "learned" }))
	})
}

func TestCloseUnderCallsIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := &stuck{disk: newDisk()}, &recorder{}
		limiter, call := process(t, invoke.Options{Store: d, Observer: ofLimiter(r.Observe)}, floods(1, "FLOOD_WAIT_3600"))
		d.set(true, false)
		ended := make(chan error)
		go func() { ended <- call(t.Context(), to(1)) }()
		synctest.Wait()
		d.set(false, false) // for saves that come later
		limiter.Close()
		<-ended
		synctest.Wait()
		require.NotContains(t, r.kinds(), "store lost")
		require.Len(t, d.keys(), 1)
	})
}

func TestChangesOfLimitsInALoopAreAllRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		opts := invoke.Options{Store: both{d, alone{}}}
		one, _ := process(t, opts, &server{})
		two, _ := process(t, opts, &server{})
		categories := classify.Categories()
		var both sync.WaitGroup
		for i, l := range []*invoke.Limiter{one, two} {
			both.Go(func() {
				for c := range slices.Values(categories) {
					if int(c)%2 == i {
						continue
					}
					assert.NoError(t, l.UpdateLimits(map[classify.Category]ratelimit.Change{c: ratelimit.Rate(float64(c) + 0.5)}))
				}
			})
		}
		both.Wait()
		synctest.Wait()
		late, _ := process(t, opts, &server{})
		for _, l := range []*invoke.Limiter{one, two, late} {
			for _, c := range categories {
				require.Equal(t, float64(c)+0.5, limitsOf(l, c).Rate, c)
			}
		}
	})
}

func TestChatsLearnTheirRatesWhenGatesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		last := map[string]time.Time{}
		s.answer = func(_ int, input bin.Encoder) error {
			chat := fmt.Sprint(input)
			if since := time.Since(last[chat]); since < 4*time.Second {
				return tgerr.New(420, fmt.Sprintf("FLOOD_WAIT_%d", 5-int(since.Seconds())))
			}
			last[chat] = time.Now()
			return nil
		}
		limiter, call := process(t, invoke.Options{Store: both{newDisk(), alone{}}, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}, s)
		for chat := range int64(3) {
			for range 5 {
				_ = call(t.Context(), to(chat+1))
			}
			time.Sleep(time.Minute)
		}
		chats := map[classify.Peer]bool{}
		for _, rate := range limiter.Learned() {
			chats[rate.Chat] = true
		}
		for chat := range int64(3) {
			require.True(t, chats[classify.Peer(chat+1)], chat)
		}
	})
}

// hostile are facts that no version has written.
func hostile() map[string]string {
	return map[string]string{
		"rate/global":        `{"state":{"held":0.000001,"spare":0,"used":0,"flooded":"2000-01-01T00:00:00Z"}}`,
		"rate/message":       `{"state":{"held":1e-300,"spare":1e300,"used":1e300,"flooded":"2000-01-01T00:00:00Z"}}`,
		"rate/media":         `{"state":{"held":1,"flooded":"9999-01-01T00:00:00Z"}}`,
		"rate/query":         `{"state":{"held":-1,"flooded":"2000-01-01T00:00:00Z"},"whole":["messages.sendMessage"]}`,
		"rate/bulk":          `[]`,
		"rate/":              `{}`,
		"rate/nothing":       `{}`,
		"rate/chat/1":        `{"ceiling":0.000001,"state":{"held":0.000001,"flooded":"2000-01-01T00:00:00Z"}}`,
		"rate/chat/2":        `{"ceiling":1e308,"state":{"held":1e308,"flooded":"2000-01-01T00:00:00Z"}}`,
		"rate/chat/x":        `{}`,
		"rate/chat/0":        `{"ceiling":1,"state":{"held":1,"flooded":"2000-01-01T00:00:00Z"}}`,
		"limits":             `{"buckets":{"message":{"Rate":-1,"Burst":-1},"global":{"Rate":1e300,"Burst":1},"private":{}},"windows":{"message":{},"group":{"Limit":-1}}}`,
		"limit/message":      `{"bucket":{"Rate":-1,"Burst":-1}}`,
		"limit/global":       `{"window":{"Limit":1,"Period":1}}`,
		"limit/group":        `{"window":{"Limit":1,"Period":-1}}`,
		"limit/private":      `{}`,
		"limit/":             `{"bucket":{"Rate":1,"Burst":1}}`,
		"limit/learned":      `{"bucket":{"Rate":1,"Burst":1}}`,
		"limit/query":        `null`,
		"flood/":             `{"dc":0,"method":"messages.sendMessage","kind":"flood_wait","scope":"method","until":"9999-01-01T00:00:00Z","wait":9223372036854775807}`,
		"flood/x":            `{"kind":"flood_wait","scope":"account","until":"9999-01-01T00:00:00Z","wait":-1}`,
		"flood/y":            `{"until":7}`,
		"flood/z":            `null`,
		"refusal/":           `{"kind":"spam_limited","at":["9999-01-01T00:00:00Z"]}`,
		"refusal/x":          `{"kind":"nonsense","tripped":"2000-01-01T00:00:00Z"}`,
		"refusal/auth_gone/": `"x"`,
		"":                   `{}`,
		"\x00\xff":           "\x00\xff",
	}
}

func TestFactsThatAreHostileStopNothingForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		for key, value := range hostile() {
			d.facts[key] = store.Fact{Key: key, Value: []byte(value), Until: time.Now().Add(365 * 24 * time.Hour)}
		}
		limiter, call := process(t, invoke.Options{
			Store: both{d, counting{}}, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways},
		}, &server{})
		synctest.Wait()
		require.Equal(t, ratelimit.Limit{Rate: 30, Burst: 40}, limitsOf(limiter, classify.Global))
		for chat := range int64(3) {
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				require.NoError(t, call(ctx, to(chat+1)), chat+1)
				cancel()
			}
		}
		sent := work(t, call, 10*time.Minute)
		require.Equal(t, 20.0, limitsOf(limiter, classify.Message).Rate, "it climbs back")
		require.Greater(t, sent, 6000)
	})
}

func FuzzFactsOfAStore(f *testing.F) {
	for key, value := range hostile() {
		f.Add(key, []byte(value))
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		if !json.Valid(value) && len(value) > 100 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			for _, prefix := range []string{"", "flood/", "refusal/", "rate/", "rate/chat/", "limit/"} {
				key := prefix + strings.TrimPrefix(key, prefix)
				d.facts[key] = store.Fact{Key: key, Value: value, Until: time.Now().Add(365 * 24 * time.Hour)}
			}
			limiter, call := process(t, invoke.Options{Store: both{d, alone{}}, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}, &server{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = call(ctx, to(1))
			for _, fact := range slices.Collect(maps.Values(d.facts)) {
				require.NoError(t, d.Save(ctx, store.Fact{Key: fact.Key}))
			}
			synctest.Wait()
			limiter.Close()
		})
	})
}

func TestNameThatNoStoreTakesIsRefused(t *testing.T) {
	_, err := invoke.NewLimiter(invoke.Options{Gates: []invoke.KeyedGate{{
		Name: strings.Repeat("n", 1<<20), Rule: ratelimit.Limit{Rate: 1, Burst: 1},
		Key: func(bin.Encoder, classify.Call) string { return "" },
	}}})
	require.EqualError(t, err, "gates[0]: name has 1048576 bytes: want at most 256")
}

// An observer that is told of a store ends its goroutine, as testing.T.FailNow does.
func TestObserverThatEndsItsGoroutineIsToldOfTheStoreAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stuck{disk: newDisk()}
		var told []invoke.EventKind
		limiter, call := process(t, invoke.Options{
			Store: d,
			Observer: invoke.ObserverFunc(func(e invoke.Event) {
				if e.Kind == invoke.StoreLost || e.Kind == invoke.StoreBack {
					told = append(told, e.Kind)
					runtime.Goexit()
				}
			}),
		}, floods(1, "FLOOD_WAIT_3600"))
		synctest.Wait()
		d.set(false, true)
		_ = call(t.Context(), to(1))
		time.Sleep(time.Second)
		d.set(false, false)
		time.Sleep(10 * time.Second)
		start := time.Now()
		limiter.Close()
		require.Zero(t, time.Since(start), "there is nobody to wait for")
		require.Equal(t, []invoke.EventKind{invoke.StoreLost, invoke.StoreBack}, told)
	})
}

// strict is a memory that takes what a store takes.
type strict struct{ *disk }

func (s strict) Save(ctx context.Context, facts ...store.Fact) error {
	for _, f := range facts {
		if err := f.Validate(); err != nil {
			return err
		}
	}
	return s.disk.Save(ctx, facts...)
}

// What was read from a store may take more room when it is written.
func TestFactThatHasGrownTooLongHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		require.NoError(t, strict{d}.Save(t.Context(), store.Fact{
			Key:   "rate/query",
			Value: []byte(`{"state":{"held":10},"whole":["` + strings.Repeat("<", 60<<10) + `"]}`),
			Until: time.Now().Add(time.Hour),
		}))
		limiter, call := process(t, invoke.Options{Store: strict{d}}, floods(1, "FLOOD_WAIT_30"))
		require.Len(t, limiter.Learned(), 1)
		require.Error(t, call(t.Context(), resolve()))
		limiter.Close()
		require.Equal(t, []string{"flood/0/method/own/0/false/contacts.resolveUsername", "rate/query"}, d.keys())
	})
}

// small is a memory that is too slow for many facts at once.
type small struct {
	*disk
	saved int // facts in all
}

func (s *small) Save(ctx context.Context, facts ...store.Fact) error {
	if len(facts) > 500 {
		return fmt.Errorf("small: no answer in time: %w", store.ErrUnavailable)
	}
	if err := s.disk.Save(ctx, facts...); err != nil {
		return err
	}
	s.saved += len(facts)
	return nil
}

func TestWhatGathersInALongOutageIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &small{disk: newDisk()}
		wait := 5
		s := &server{answer: func(int, bin.Encoder) error { return tgerr.New(420, fmt.Sprintf("SLOWMODE_WAIT_%d", wait)) }}
		limiter, call := process(t, invoke.Options{
			Store: d, RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(4000), classify.Global: ratelimit.Burst(4000)},
		}, s)
		d.setDown(true)
		flooded := func(from, end int64) {
			for chat := from; chat < end; chat++ {
				require.Error(t, call(invoke.WithThreshold(t.Context(), flood.Never), to(chat)))
			}
		}
		flooded(1, 200)
		time.Sleep(time.Minute) // those are over
		wait = 3600
		flooded(200, 1001)
		d.setDown(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 801, len(d.keys()))
		require.Equal(t, 801, d.saved)
		limiter.Close()
	})
}
