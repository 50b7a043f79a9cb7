package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// disk is a memory that outlives the limiters of a test, and that several may share.
type disk struct {
	mu       sync.Mutex
	facts    map[string]store.Fact
	watchers map[chan store.Fact]bool
	down     bool
	saves    int
}

func newDisk() *disk {
	return &disk{facts: map[string]store.Fact{}, watchers: map[chan store.Fact]bool{}}
}

func (d *disk) fail() error {
	if d.down {
		return fmt.Errorf("disk: %w", store.ErrUnavailable)
	}
	return nil
}

func (d *disk) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	if down {
		for w := range d.watchers {
			close(w)
		}
		clear(d.watchers)
	}
}

func (d *disk) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.facts))
}

func (d *disk) Load(context.Context) ([]store.Fact, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.standing(), d.fail()
}

func (d *disk) standing() (facts []store.Fact) {
	for _, f := range d.facts {
		if f.Until.After(time.Now()) {
			facts = append(facts, f)
		}
	}
	return facts
}

func (d *disk) Save(_ context.Context, facts ...store.Fact) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail(); err != nil {
		return err
	}
	d.saves++
	for _, f := range facts {
		if f.Value == nil {
			delete(d.facts, f.Key)
		} else {
			d.facts[f.Key] = f
		}
		for w := range d.watchers {
			w <- f
		}
	}
	return nil
}

func (d *disk) Watch(ctx context.Context, f func(store.Fact)) error {
	d.mu.Lock()
	if err := d.fail(); err != nil {
		d.mu.Unlock()
		return err
	}
	news := make(chan store.Fact, 1000)
	d.watchers[news] = true
	all := d.standing()
	d.mu.Unlock()
	for _, fact := range all {
		f(fact)
	}
	for {
		select {
		case fact, ok := <-news:
			if !ok {
				return fmt.Errorf("disk: %w", store.ErrUnavailable)
			}
			f(fact)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// process is a client of an account as one process has it.
func process(t *testing.T, opts invoke.Options, s *server) (*invoke.Limiter, func(context.Context, bin.Encoder) error) {
	t.Helper()
	limiter, err := invoke.NewLimiter(opts)
	require.NoError(t, err)
	t.Cleanup(limiter.Close)
	_, call := choke(t, invoke.Options{Limiter: limiter}, s)
	return limiter, func(ctx context.Context, req bin.Encoder) error { return call(ctx, req, nil) }
}

func TestFloodOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDisk(), floods(1, "FLOOD_WAIT_3600")
		first, call := process(t, invoke.Options{Store: d}, s)
		requireWait(t, call(t.Context(), to(1)))
		first.Close()

		for range 100 { // a crash loop
			time.Sleep(time.Second)
			again, call := process(t, invoke.Options{Store: d}, s)
			require.Equal(t, flood.KnownFlood, requireWait(t, call(t.Context(), to(1))).Reason)
			require.Len(t, again.Floods(), 1)
			again.Close()
		}
		require.Equal(t, 1, s.count(), "the server sees one request in the hour")

		time.Sleep(time.Hour)
		_, call = process(t, invoke.Options{Store: d}, s)
		require.NoError(t, call(t.Context(), to(1)))
	})
}

func TestFloodIsKnownToTheOtherProcessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDisk(), floods(1, "FLOOD_WAIT_3600")
		one, call := process(t, invoke.Options{Store: d}, s)
		_, otherCall := process(t, invoke.Options{Store: d}, s)
		requireWait(t, call(t.Context(), to(1)))
		synctest.Wait()
		requireWait(t, otherCall(t.Context(), to(1)))
		require.Equal(t, 1, s.count())

		require.Equal(t, 1, one.ClearFloods(nil))
		synctest.Wait()
		require.NoError(t, otherCall(t.Context(), to(1)), "what one forgets, all do")
		require.Empty(t, d.keys())
	})
}

func TestMemoryThatIsLostStopsNoCallAndIsCaughtUpWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, r := newDisk(), floods(1, "FLOOD_WAIT_3600"), &recorder{}
		_, call := process(t, invoke.Options{Store: d, Observer: ofLimiter(r.Observe)}, s)
		synctest.Wait()
		d.setDown(true)
		requireWait(t, call(t.Context(), to(1)))
		require.NoError(t, call(t.Context(), to(2)))
		require.Empty(t, d.keys())
		time.Sleep(time.Minute)
		require.Equal(t, []string{"store lost"}, r.kinds(), "once, however often it is asked")

		d.setDown(false)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"store lost", "store back"}, r.kinds())
		require.Len(t, d.keys(), 1, "what could not be saved is")
	})
}

func TestMemoryThatCannotBeReadAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.setDown(true)
		_, err := invoke.NewLimiter(invoke.Options{Store: d})
		require.ErrorIs(t, err, store.ErrUnavailable, "a flood may stand that nobody knows of")

		d.facts["flood/bad"] = store.Fact{Key: "flood/bad", Value: []byte(`{"until":7}`), Until: time.Now().Add(time.Hour)}
		r := &recorder{}
		_, call := process(t, invoke.Options{Store: d, OnFailure: store.FailLocal, Observer: ofLimiter(r.Observe)}, &server{})
		require.NoError(t, call(t.Context(), to(1)))
		synctest.Wait()
		require.Equal(t, []string{"store lost"}, r.kinds())
		d.setDown(false)
		time.Sleep(10 * time.Second)
		require.NoError(t, call(t.Context(), to(1)), "a fact that does not read is ignored")
	})
}

// limited answers as a server does that takes so many calls a second, whoever they are for.
func limited(perSecond float64, burst int) (*server, *int) {
	tokens, at, flooded := float64(burst), time.Now(), 0
	var stands time.Time
	var mu sync.Mutex
	return &server{answer: func(int, bin.Encoder) error {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		tokens, at = min(float64(burst), tokens+now.Sub(at).Seconds()*perSecond), now
		if tokens < 1 || now.Before(stands) {
			flooded++
			wait := time.Duration((1-tokens)/perSecond*float64(time.Second)).Truncate(time.Second) + time.Second
			if until := now.Add(wait); until.After(stands) {
				stands = until
			}
			return tgerr.New(420, fmt.Sprintf("FLOOD_WAIT_%d", int(time.Until(stands).Seconds()+0.999)))
		}
		tokens--
		return nil
	}}, &flooded
}

// work sends to chats in turn for as long as it takes, without a pause, and returns how many
// came through.
func work(t *testing.T, call func(context.Context, bin.Encoder) error, d time.Duration) (sent int) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := int64(0)
	for range 16 {
		workers.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				next++
				chat := next % 1000
				mu.Unlock()
				if call(ctx, to(chat+1)) != nil {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return sent
}

func TestUnknownLimitIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, flooded := limited(10, 10)
		d, r := newDisk(), &recorder{}
		opts := invoke.Options{
			Store: d, Observer: ofLimiter(r.Observe),
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(30)},
		}
		limiter, call := process(t, opts, s)
		work(t, call, time.Minute)
		before := *flooded
		sent := work(t, call, 9*time.Minute)
		t.Logf("in 9 minutes %d came through, of 5400; %d floods, %d in the first minute", sent, *flooded-before, before)
		require.GreaterOrEqual(t, sent, 5400*8/10)
		require.LessOrEqual(t, *flooded-before, 14, "one in some 55 s of use")

		rates := limiter.Learned()
		require.Len(t, rates, 1)
		require.Equal(t, classify.Message, rates[0].Category)
		require.InDelta(t, 10, rates[0].Rate, 8, "it may be in a probe")
		require.Equal(t, 30.0, rates[0].Ceiling)
		require.Equal(t, rates[0].Rate, limiter.Stats()[classify.Message].Limit.Rate)
		require.Contains(t, r.kinds(), "learned")
		limiter.Close()

		again, call := process(t, opts, s)
		require.Less(t, again.Learned()[0].Rate, 11.0, "a restart does not learn anew")
		before = *flooded
		sent = work(t, call, time.Minute)
		require.GreaterOrEqual(t, sent, 480)
		require.LessOrEqual(t, *flooded-before, 3)

		again.Unlearn()
		require.Empty(t, again.Learned())
		require.Equal(t, 30.0, again.Stats()[classify.Message].Limit.Rate)
	})
}

// A category, or the gates of chats, may be paused when the process starts, and be let go
// later.
func TestStoredRateOutlivesAStartThatIsPaused(t *testing.T) {
	for _, what := range []string{"category", "chat"} {
		synctest.Test(t, func(t *testing.T) {
			d, s := newDisk(), &datacenter{latency: 50 * time.Millisecond}
			opts := invoke.Options{Store: d, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}
			first := newLimiter(t, opts)
			call := connect(t, invoke.Options{Limiter: first}, s)
			paused := opts
			if what == "chat" {
				busyChat(t, first, s, call)
				paused.Chats.Private = ratelimit.Rate(0)
			} else {
				s.put(standing(2*time.Second, everything))
				require.NoError(t, call(t.Context(), resolve()))
				paused.RateLimits = map[classify.Category]ratelimit.Change{classify.Query: ratelimit.Rate(0)}
			}
			before := first.Learned()
			require.Len(t, before, 1)
			first.Close()

			again := newLimiter(t, paused)
			require.Len(t, again.Learned(), 1)
			if what == "chat" {
				require.NoError(t, again.UpdateGates(map[string]ratelimit.Change{invoke.PrivateGate: ratelimit.Rate(1)}))
			} else {
				require.Zero(t, limitsOf(again, classify.Query).Rate)
				require.NoError(t, again.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Query: ratelimit.Rate(30)}))
			}
			after := again.Learned()[0]
			require.Equal(t, before[0].Ceiling, after.Ceiling)
			require.InDelta(t, before[0].Rate, after.Rate, 0.3*before[0].Rate, "from where it began")
			require.Less(t, after.Rate, after.Ceiling)
			again.Close()
			third := newLimiter(t, opts)
			require.Len(t, third.Learned(), 1)
			third.Close()
		})
	}
}

func TestLimitOfAllChatsIsLearnedByWhoSendsToOneAfterTheOther(t *testing.T) {
	for name, mode := range map[string]invoke.ChatMode{"a bot": invoke.ChatsAlways, "a person": invoke.ChatsNever} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, flooded := limited(7, 10)
				limiter, call := process(t, invoke.Options{Chats: invoke.ChatLimits{Mode: mode}}, s)
				start, sent, early := time.Now(), 0, 0
				for chat := int64(0); time.Since(start) < 5*time.Minute; chat++ {
					if call(t.Context(), to(chat%60+1)) == nil {
						sent++
					} else {
						time.Sleep(time.Second)
					}
					if time.Since(start) < time.Minute {
						early = *flooded
					}
				}
				t.Logf("%d came through, of %d; %d floods, %d of them in the first minute", sent, 5*60*7, *flooded, early)
				require.GreaterOrEqual(t, sent, 5*60*7*75/100)
				require.LessOrEqual(t, *flooded-early, 9)
				for _, rate := range limiter.Learned() {
					require.Equal(t, classify.Message, rate.Category, "no chat is to blame")
				}
			})
		})
	}
}

func TestNoisyChatLearnsItsOwnRateAndCostsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		last := map[int64]time.Time{}
		s.answer = func(_ int, input bin.Encoder) error {
			req, ok := classify.Unwrap(input).(*tg.MessagesSendMessageRequest)
			if !ok {
				return nil
			}
			chat := req.Peer.(*tg.InputPeerUser).UserID
			if chat != 1 {
				return nil
			}
			if since := time.Since(last[chat]); since < 4*time.Second {
				return tgerr.New(420, fmt.Sprintf("FLOOD_WAIT_%d", 5-int(since.Seconds())))
			}
			last[chat] = time.Now()
			return nil
		}
		limiter, call := process(t, invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}, s)
		for range 200 {
			_ = call(t.Context(), to(1))
		}
		before := limiter.Learned()
		require.Len(t, before, 1)
		require.Equal(t, classify.Peer(1), before[0].Chat)
		require.InDelta(t, 0.25, before[0].Rate, 0.15)
		require.Equal(t, 20.0, limiter.Stats()[classify.Message].Limit.Rate, "the category is as it was")
		require.NoError(t, call(invoke.WithNoWait(t.Context()), to(2)))
	})
}

func TestLearningCanBeTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := limited(10, 10)
		limiter, call := process(t, invoke.Options{Learning: invoke.Off}, s)
		work(t, call, 20*time.Second)
		require.Empty(t, limiter.Learned())
		require.Equal(t, 20.0, limiter.Stats()[classify.Message].Limit.Rate)
	})
}

func TestLongFloodIsNoRateToLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, call := process(t, invoke.Options{}, floods(1, "FLOOD_WAIT_3600"))
		requireWait(t, call(t.Context(), &tg.ContactsResolveUsernameRequest{Username: "a"}))
		require.Empty(t, limiter.Learned())
	})
}

func TestRefusalsThatNeverPassAreStoppedAndRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := true
		s := &server{answer: func(int, bin.Encoder) error {
			if refuse {
				return tgerr.New(400, "PEER_FLOOD")
			}
			return nil
		}}
		d, r := newDisk(), &recorder{}
		limiter, err := invoke.NewLimiter(invoke.Options{Store: d})
		require.NoError(t, err)
		_, call := choke(t, invoke.Options{Limiter: limiter, Observer: r}, s)
		for range 30 {
			err := call(t.Context(), to(1), nil)
			require.ErrorIs(t, err, flood.ErrPermanent)
			require.True(t, tgerr.Is(err, "PEER_FLOOD"), "programs that look for it find it")
			time.Sleep(time.Second)
		}
		require.Equal(t, 20, s.count(), "the others were not sent")
		require.Equal(t, 1, strings.Count(strings.Join(r.kinds(), ","), "stopped"))
		limiter.Close()

		again, err := invoke.NewLimiter(invoke.Options{Store: d})
		require.NoError(t, err)
		defer again.Close()
		_, call = choke(t, invoke.Options{Limiter: again}, s)
		refused, ok := errors.AsType[*flood.PermanentError](call(t.Context(), to(1), nil))
		require.True(t, ok)
		require.True(t, refused.Local, "a restart does not hammer on")
		refuse = false
		synctest.Wait() // what is told at the start has been told
		require.NotZero(t, again.ClearRefusals(nil))
		synctest.Wait()
		require.NoError(t, call(t.Context(), to(1), nil))
		require.Empty(t, again.Refusals())
		require.Empty(t, d.keys())
	})
}

func TestCallsThatWaitAreNotSentOnceTheirKindIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, bin.Encoder) error { return tgerr.New(400, "PEER_FLOOD") }}
		limiter, call := process(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(10).Burst(1)},
		}, s)
		var all sync.WaitGroup
		for chat := range int64(1000) {
			all.Go(func() { assert.ErrorIs(t, call(t.Context(), to(chat+1)), flood.ErrPermanent) })
		}
		all.Wait()
		require.Equal(t, 20, s.count())
		require.Equal(t, 0, limiter.Stats()[classify.Message].Waiters)
	})
}

func TestLimitsAreChangedForAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		opts := invoke.Options{Store: both{d, alone{}}}
		one, _ := process(t, opts, &server{})
		two, _ := process(t, opts, &server{})
		require.NoError(t, one.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(3)}))
		require.NoError(t, one.UpdateGates(map[string]ratelimit.Change{
			invoke.GroupGate: ratelimit.To(ratelimit.Window{Limit: 7, Period: time.Minute}),
		}))
		synctest.Wait()
		require.Equal(t, ratelimit.Limit{Rate: 3, Burst: 30}, two.Stats()[classify.Message].Limit)

		late, _ := process(t, opts, &server{})
		require.Equal(t, ratelimit.Limit{Rate: 3, Burst: 30}, late.Stats()[classify.Message].Limit)
		require.NoError(t, late.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Rate(1)}))
		synctest.Wait()
		for _, l := range []*invoke.Limiter{one, two, late} {
			require.Equal(t, 3.0, l.Stats()[classify.Message].Limit.Rate)
			require.Equal(t, 1.0, l.Stats()[classify.Media].Limit.Rate)
		}
		require.Error(t, two.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Rate(-1)}))
	})
}

// alone shares gates with nobody.
type alone struct{}

func (alone) Take(_ context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	found := make([]ratelimit.Found, len(charges))
	for i, c := range charges {
		found[i].Used = c.Used
		found[i].Used.Count += c.Cost
		if limit, ok := c.Rule.(ratelimit.Limit); ok {
			found[i].Used.Refill += time.Duration(float64(c.Cost) / limit.Rate * float64(time.Second))
		}
	}
	return true, found, nil
}

func (alone) GiveBack(context.Context, []ratelimit.Charge) error { return nil }

// A store tells of a rate what cannot be, or with the time of a clock that is far ahead. It goes
// on to be learned.
func TestBadFactOfALearnedRateStopsNoLesson(t *testing.T) {
	for name, fact := range map[string]string{
		"a flood that lasts a year": `{"state":{"held":15,"spare":1,"flooded":"%s"},"over":"2001-01-01T00:00:00Z"}`,
		"and a rate below zero":     `{"state":{"held":-1,"flooded":"%s"},"over":"2001-01-01T00:00:00Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s := newDisk(), &datacenter{latency: 50 * time.Millisecond}
				limiter := newLimiter(t, invoke.Options{Store: d, Chats: invoke.ChatLimits{Mode: invoke.ChatsNever}})
				defer limiter.Close()
				call := connect(t, invoke.Options{Limiter: limiter}, s)
				chat := int64(0)
				flooded := func() float64 {
					s.put(standing(3*time.Second, everything))
					var both sync.WaitGroup
					for range 2 {
						chat++
						both.Go(func() { require.NoError(t, call(t.Context(), to(chat))) })
						synctest.Wait()
					}
					both.Wait()
					require.Len(t, limiter.Learned(), 1)
					return limiter.Learned()[0].Rate
				}
				flooded()
				time.Sleep(2 * time.Minute)
				require.NoError(t, d.Save(t.Context(), store.Fact{
					Key: "rate/message", Value: fmt.Appendf(nil, fact, time.Now().Format(time.RFC3339Nano)), Until: time.Now().Add(time.Hour),
				}))
				synctest.Wait()
				time.Sleep(2 * time.Minute)
				before := limiter.Learned()[0].Rate
				require.Less(t, flooded(), 0.9*before)
			})
		})
	}
}

// There are more chats than are remembered, and their rates are kept for a month.
func TestRatesOfChatsThatAreForgottenAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		for chat := range 1100 {
			require.NoError(t, d.Save(t.Context(), store.Fact{
				Key: fmt.Sprintf("rate/chat/%d", chat+1), Value: []byte(`{"state":{"held":0.5}}`), Until: time.Now().Add(time.Hour),
			}))
		}
		limiter := newLimiter(t, invoke.Options{Store: d})
		require.Equal(t, 1024, len(limiter.Learned()))
		limiter.Close()
		require.Equal(t, 1024, len(d.keys()))
	})
}

// ofLimiter hears what happens to the limiter and leaves out the calls.
type ofLimiter func(invoke.Event)

// Observe implements invoke.Observer.
func (o ofLimiter) Observe(e invoke.Event) {
	switch e.Kind {
	case invoke.Learned, invoke.StoreLost, invoke.StoreBack:
		o(e)
	}
}

// both is a store that keeps facts in one place and gates in another.
type both struct {
	store.Facts
	ratelimit.Shared
}
