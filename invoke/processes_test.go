package invoke_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// remote is a memory that is some way off: what is saved there arrives late.
type remote struct {
	store.Facts
	way time.Duration
}

func (r remote) Save(ctx context.Context, facts ...store.Fact) error {
	time.Sleep(r.way)
	return r.Facts.Save(ctx, facts...)
}

func (r remote) Watch(ctx context.Context, f func(store.Fact)) error {
	return r.Facts.Watch(ctx, func(fact store.Fact) { time.Sleep(r.way); f(fact) })
}

// A store tells a process what it has saved itself, a moment later, when that may have been
// forgotten here.
func TestEchoOfAnOlderFactBringsNothingBack(t *testing.T) {
	count := map[string]func(*invoke.Limiter) int{
		"flood":   func(l *invoke.Limiter) int { return len(l.Floods()) },
		"refusal": func(l *invoke.Limiter) int { return len(l.Refusals()) },
		"rate":    func(l *invoke.Limiter) int { return len(l.Learned()) },
	}
	for what, known := range count {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := newLimiter(t, invoke.Options{Store: remote{newDisk(), 50 * time.Millisecond}})
				s := &server{answer: func(int, bin.Encoder) error {
					switch what {
					case "refusal":
						return tgerr.New(400, "PEER_FLOOD")
					default:
						return tgerr.New(420, "FLOOD_WAIT_30")
					}
				}}
				_, call := choke(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Never}, s)
				for range 3 {
					for range 20 {
						require.Error(t, call(t.Context(), resolve(), nil))
					}
					require.Equal(t, 1, known(limiter))
					time.Sleep(time.Millisecond)
					limiter.ClearFloods(nil)
					limiter.ClearRefusals(nil)
					limiter.Unlearn()
					for range 200 {
						require.Zero(t, known(limiter))
						time.Sleep(time.Millisecond)
					}
				}
				require.Error(t, call(t.Context(), resolve(), nil))
				time.Sleep(time.Second)
				require.Equal(t, 1, known(limiter), "what is new stays")
			})
		})
	}
}

// common are the buckets that the processes of a test share. They take turns: who was
// refused comes before who was not, for as long as it is there to come.
type common struct {
	mu   sync.Mutex
	full map[string]time.Time // when each bucket is full again
	rate map[string]float64   // at the rate of who asked last
	turn map[string][]claim
}

type claim struct {
	of    *member
	until time.Time
}

func newCommon() *common {
	return &common{full: map[string]time.Time{}, rate: map[string]float64{}, turn: map[string][]claim{}}
}

// member is one process's view of them.
type member struct{ *common }

func (m *member) Take(_ context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	time.Sleep(time.Millisecond)
	c := m.common
	c.mu.Lock()
	defer c.mu.Unlock()
	now, admitted := time.Now(), true
	found := make([]ratelimit.Found, len(charges))
	next := make([]time.Time, len(charges))
	for i, charge := range charges {
		limit := charge.Rule.(ratelimit.Limit)
		token := time.Duration(float64(time.Second) / limit.Rate)
		full := c.full[charge.Gate]
		if missing := full.Sub(now); missing > 0 { // tokens are carried over
			full = now.Add(time.Duration(float64(missing) * c.rate[charge.Gate] / limit.Rate))
		}
		if used := now.Add(charge.Used.Refill - 10*time.Millisecond); full.Before(used) {
			full = used
		}
		c.full[charge.Gate], c.rate[charge.Gate] = full, limit.Rate
		next[i] = full.Add(time.Duration(charge.Cost) * token)
		turn := slices.DeleteFunc(c.turn[charge.Gate], func(c claim) bool { return now.After(c.until) })
		place := slices.IndexFunc(turn, func(c claim) bool { return c.of == m })
		ahead := place
		if place < 0 {
			ahead = len(turn)
		}
		if wait := next[i].Sub(now) - time.Duration(limit.Burst-ahead)*token; wait > 0 {
			found[i].Wait, admitted = wait, false
			mine := claim{m, now.Add(wait + 100*time.Millisecond)}
			if place < 0 {
				turn = append(turn, mine)
			} else {
				turn[place] = mine
			}
		}
		c.turn[charge.Gate] = turn
		found[i].Used.Refill = full.Sub(now)
	}
	for i, charge := range charges {
		if admitted {
			c.turn[charge.Gate] = slices.DeleteFunc(c.turn[charge.Gate], func(c claim) bool { return c.of == m })
			c.full[charge.Gate] = next[i]
			found[i].Used.Refill = next[i].Sub(now)
		}
	}
	return admitted, found, nil
}

func (m *member) GiveBack(_ context.Context, charges []ratelimit.Charge) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, charge := range charges {
		m.full[charge.Gate] = m.full[charge.Gate].Add(-time.Duration(float64(charge.Cost) / charge.Rule.(ratelimit.Limit).Rate * float64(time.Second)))
	}
	return nil
}

// Four processes work; one of them meets a flood. The others send nothing that leaves more
// than 100 ms after it was told, but for the few calls that look whether the guess is right.
func TestFloodMetByOneProcessStopsAllWithin100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		d := newDisk()
		for range 4 {
			opts := invoke.Options{Store: remote{d, 5 * time.Millisecond}}
			defer workers(t, connect(t, invoke.Options{Limiter: newLimiter(t, opts)}, s), 8, 1000)()
		}
		time.Sleep(10 * time.Second)
		l := standing(10*time.Minute, ofMethods("messages.sendMessage"))
		s.put(l)
		begin := time.Now()
		time.Sleep(10*time.Minute - time.Second)
		during := s.between(begin, s.latency/2, 10*time.Minute)
		looks := during.count(func(a arrival) bool { return a.sent.Sub(l.told) > 100*time.Millisecond })
		early := during.count(func(a arrival) bool {
			after := a.sent.Sub(l.told)
			return after > 100*time.Millisecond && after < 4*time.Second
		})
		t.Logf("4 processes at 20/s each: %d calls arrived in the flood, %d of them later than 100 ms after it was told", len(during), looks)
		require.NotZero(t, len(during))
		require.Zero(t, early)
		require.LessOrEqual(t, looks, 4*4, "after 5, 25, 105 and 425 s each")
	})
}

// Four processes share gates and memory, and the server's limit is unknown to all of them.
// The one that was flooded last leads, and the others follow.
func TestLearnedRateIsCommonToAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, shared, start := unknown(10, 5), newDisk(), newCommon(), time.Now()
		var limiters []*invoke.Limiter
		var stops []func()
		for range 4 {
			opts := thirty()
			opts.Store = both{d, &member{shared}} // no sleep here: it would be under a mutex, and stop the time
			limiters = append(limiters, newLimiter(t, opts))
			stops = append(stops, workers(t, connect(t, invoke.Options{Limiter: limiters[len(limiters)-1]}, s), 8, 1000))
		}
		time.Sleep(10 * time.Minute)
		rest := s.between(start, time.Minute, 10*time.Minute)
		share := float64(rest.passed()) / (9 * 60 * 10)
		var rates []float64
		for _, l := range limiters {
			if learned := l.Learned(); len(learned) == 1 {
				rates = append(rates, learned[0].Rate)
			}
		}
		for _, stop := range stops {
			stop()
		}
		t.Logf("4 processes: %.1f %% of the limit, %d floods in 9 minutes (%d calls refused); rates %.2f", 100*share, rest.floods(), rest.refused(), rates)
		require.GreaterOrEqual(t, share, 0.8) // each by itself they would come to 0.49
		require.LessOrEqual(t, rest.floods(), 11)
		require.Len(t, rates, 4)
	})
}

// wall is a clock that somebody has set.
type wall struct {
	clock.Clock
	set time.Duration
}

func (w wall) Now() time.Time { return w.Clock.Now().Add(w.set) }

// A process that crashes and is restarted, and whose clock is set in between, sends nothing
// into a flood that it can know of. One that was set forward by a day ends it: one call finds
// out that it was not over.
func TestCrashLoopWithAClockThatIsSet(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		set  []time.Duration
		met  int
		most time.Duration // that a flood of an hour may then be taken to last
	}{
		"as it was":       {[]time.Duration{0, 0, 0, 0}, 1, time.Hour},
		"back by a day":   {[]time.Duration{0, -day, -day, -day}, 1, time.Hour},
		"ahead by a day":  {[]time.Duration{0, day, day, day}, 2, time.Hour},
		"back and ahead":  {[]time.Duration{0, -day, 0, -day}, 1, time.Hour},
		"ahead and back":  {[]time.Duration{0, day, 0, 0}, 2, time.Hour},
		"ever back again": {[]time.Duration{0, -day, -2 * day, -3 * day}, 1, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "weir.db")
				s := &datacenter{latency: 50 * time.Millisecond}
				s.put(standing(time.Hour, ofMethods("contacts.resolveUsername")))
				for _, set := range test.set {
					for range 5 {
						c := wall{clock.System, set}
						file, err := boltstore.Open(path, boltstore.Options{Clock: c})
						require.NoError(t, err)
						// A crash is that nobody closes anything; the file has to be, for the next.
						limiter := newLimiter(t, invoke.Options{Store: file, Clock: c})
						call := connect(t, invoke.Options{Limiter: limiter}, s)
						for range 10 {
							wait := requireWait(t, call(t.Context(), resolve()))
							require.LessOrEqual(t, wait.Wait, test.most+2*time.Second)
						}
						require.Len(t, limiter.Floods(), 1)
						require.Equal(t, flood.Method, limiter.Floods()[0].Scope)
						require.NoError(t, file.Close())
						time.Sleep(time.Minute)
					}
				}
				require.Equal(t, test.met, len(s.all()), "requests in the hour")
			})
		})
	}
}
