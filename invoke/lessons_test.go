package invoke_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

var ofBots = invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}

func TestFloodWithoutANumberTeachesNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, invoke.Options{})
		m, err := invoke.New(invoke.Options{Limiter: limiter})
		require.NoError(t, err)
		defer m.Close()
		first := true
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error {
			if first {
				first = false
				return tgerr.New(420, "FLOOD_WAIT")
			}
			return nil
		}))
		require.NoError(t, call(t.Context(), resolve(), nil))
		require.Empty(t, limiter.Learned())
	})
}

// A chat is busy, and the server minds how often its notices of typing come. That is not
// about its messages.
func TestFloodOfTypingDoesNotSlowTheMessagesOfTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(3*time.Second, ofMethods("messages.setTyping")))
		limiter := newLimiter(t, ofBots)
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		for range 3 {
			require.NoError(t, call(t.Context(), to(1)))
		}
		require.ErrorIs(t, call(t.Context(), typing()), flood.ErrGivenUp)
		require.Empty(t, limiter.Learned())
	})
}

// Broadcasts that pay pass by the bucket of their category.
func TestBroadcastThatPaysNeitherLowersNorRaisesALearnedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		limiter := newLimiter(t, ofBots)
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		paid := func(chat int64) error {
			return call(t.Context(), &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: chat}, AllowPaidFloodskip: true})
		}
		flooded := standing(2*time.Second, everything)
		s.put(flooded)
		var both sync.WaitGroup
		both.Go(func() { require.NoError(t, paid(1)) })
		both.Go(func() { require.NoError(t, paid(2)) })
		both.Wait()
		require.Empty(t, limiter.Learned())

		flooded.until = time.Now().Add(2 * time.Second)
		for chat := range int64(2) {
			both.Go(func() { require.NoError(t, call(t.Context(), to(10+chat))) })
		}
		both.Wait()
		before := limiter.Learned()
		require.Len(t, before, 1)
		for i := range int64(3000) {
			require.NoError(t, paid(i+1))
		}
		require.Equal(t, before, limiter.Learned())
	})
}

// Some chats are flooded time and again, by turns, while the messages of others come
// through. Even if two were once flooded in one moment, that is not held against all again.
func TestSomeNoisyChatsDoNotSlowTheOthers(t *testing.T) {
	for _, mode := range []invoke.ChatMode{invoke.ChatsNever, invoke.ChatsAlways} {
		for _, together := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				noisy := int64(3)
				s := &datacenter{latency: 50 * time.Millisecond}
				limiter := newLimiter(t, invoke.Options{Chats: invoke.ChatLimits{Mode: mode}})
				call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Never}, s)
				if together {
					noisy = 2 // a third would be believed to be one more proof, once
					s.put(standing(time.Second, everything))
					var both sync.WaitGroup
					for chat := range int64(2) {
						both.Go(func() { require.ErrorIs(t, call(t.Context(), to(chat+1)), flood.ErrGivenUp) })
					}
					both.Wait()
					time.Sleep(2 * time.Second)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var writers sync.WaitGroup
				write := func(chat int64, after, every time.Duration) {
					writers.Go(func() {
						time.Sleep(after)
						for ctx.Err() == nil {
							next := time.Now().Add(every)
							_ = call(ctx, to(chat))
							time.Sleep(time.Until(next))
						}
					})
				}
				for chat := int64(1); chat <= noisy; chat++ {
					s.put(bucket(0.2, 1, inChat(chat)))
					write(chat, time.Duration(chat)*1300*time.Millisecond, 3900*time.Millisecond)
				}
				for chat := int64(10); chat < 20; chat++ {
					write(chat, time.Duration(chat)*190*time.Millisecond, 2*time.Second)
				}
				writers.Wait()
				require.Greater(t, s.all().floods(), 30)
				for _, l := range limiter.Learned() {
					require.True(t, l.Chat != 0 || together && l.Rate > 2, "mode %v: %+v", mode, l)
				}
			})
		}
	}
}

// Two noisy chats are flooded in one moment, so that it looks like a flood of all chats, and
// another one's message, which was sent after the first of the two, comes through. What was
// learned from that is forgotten: the first time, and when a rate was known already.
func TestLessonOfAFloodThatProvesNarrowerIsTakenBack(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts := invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsNever}, Store: newDisk()}
			limiter, other := newLimiter(t, opts), newLimiter(t, opts)
			m, err := invoke.New(invoke.Options{Limiter: limiter, SleepThreshold: flood.Never})
			require.NoError(t, err)
			defer m.Close()
			call := m.Handle(telegram.InvokeFunc(func(_ context.Context, input bin.Encoder, _ bin.Decoder) error {
				chat := chatOf(input)
				time.Sleep(time.Duration(chat) * 100 * time.Millisecond) // the first chat is answered first
				if chat < 10 {
					return tgerr.New(420, "FLOOD_WAIT_5")
				}
				return nil
			}))
			var wg sync.WaitGroup
			flooded := func(req bin.Encoder) {
				wg.Go(func() { require.ErrorIs(t, call(t.Context(), req, nil), flood.ErrGivenUp) })
			}
			if known {
				flooded(edit(1))
				flooded(edit(2))
				wg.Wait()
				time.Sleep(10 * time.Second)
				require.Len(t, limiter.Learned(), 1)
			}
			before, limit := limiter.Learned(), limitsOf(limiter, classify.Message)
			for range 10 {
				flooded(to(3))
				flooded(to(5))
				time.Sleep(450 * time.Millisecond) // the first is known
				wg.Go(func() { require.NoError(t, call(t.Context(), to(10), nil)) })
				time.Sleep(250 * time.Millisecond) // and so is the other
				require.Len(t, limiter.Learned(), 1)
				require.Less(t, limitsOf(limiter, classify.Message).Rate, limit.Rate)
				synctest.Wait()
				require.Len(t, other.Learned(), 1, "so does another process")
				wg.Wait()
				synctest.Wait()
				require.Len(t, other.Learned(), len(before))
				after := limiter.Learned()
				if require.Len(t, after, len(before)); known {
					require.GreaterOrEqual(t, after[0].Rate, before[0].Rate)
				} else {
					require.Equal(t, limit, limitsOf(limiter, classify.Message))
				}
				require.NoError(t, call(t.Context(), to(20), nil), "nor is it known of all chats any more")
				time.Sleep(10 * time.Second)
			}
			limiter.Close()
			other.Close()
		})
	}
}

// Calls that cost 3 tokens each, at a server that takes 4 of them a second: 12 tokens.
func TestLimitIsLearnedByCallsThatCostMoreThanOne(t *testing.T) {
	for _, burst := range []float64{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			s := unknown(4, burst)
			limiter := newLimiter(t, invoke.Options{})
			call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for call(invoke.WithCost(ctx, 3), resolve()) == nil { // until the time is over
					}
				})
			}
			all.Wait()
			rest := s.between(start, time.Minute, 10*time.Minute)
			share := float64(rest.passed()) / (9 * 60 * 4)
			t.Logf("burst %v: %.1f %%, %d floods, %d refused", burst, 100*share, rest.floods(), rest.refused())
			require.GreaterOrEqual(t, share, 0.7)
			require.LessOrEqual(t, rest.floods(), 14)
		})
	}
}

func TestCallThatCostsMoreThanOneFitsInWhatItsChatHasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, call := withBusyChat(t)
		for range 3 {
			require.NoError(t, call(invoke.WithCost(t.Context(), 3), to(1)))
			require.NoError(t, call(t.Context(), to(1)))
		}
		require.ErrorIs(t, call(invoke.WithCost(t.Context(), 4), to(1)), ratelimit.ErrImpossible, "as configured")
	})
}

// The other way round: nothing came through, and the lesson stays.
func TestLessonOfAFloodOfAllChatsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(5*time.Second, everything))
		limiter := newLimiter(t, invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsNever}})
		call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
		var wg sync.WaitGroup
		for chat := range int64(10) {
			wg.Go(func() { require.NoError(t, call(t.Context(), to(chat+1))) })
		}
		wg.Wait()
		require.Empty(t, limiter.Floods())
		learned := limiter.Learned()
		require.Len(t, learned, 1)
		require.Less(t, learned[0].Rate, learned[0].Ceiling)
	})
}

// withBusyChat is a bot of which a chat was flooded, so that it has learned its rate.
func withBusyChat(t *testing.T) (*invoke.Limiter, *datacenter, func(context.Context, bin.Encoder) error) {
	s := &datacenter{latency: 50 * time.Millisecond}
	limiter := newLimiter(t, ofBots)
	call := connect(t, invoke.Options{Limiter: limiter}, s)
	busyChat(t, limiter, s, call)
	return limiter, s, call
}

// busyChat floods a chat of a bot, so that it learns its rate.
func busyChat(t *testing.T, limiter *invoke.Limiter, s *datacenter, call func(context.Context, bin.Encoder) error) {
	for range 3 {
		require.NoError(t, call(t.Context(), to(1)))
	}
	s.put(standing(2*time.Second, inChat(1)))
	require.NoError(t, call(t.Context(), to(1)))
	require.Len(t, limiter.Learned(), 1)
	require.EqualValues(t, 1, limiter.Learned()[0].Chat)
}

func TestCeilingsOfChatsMoveWithTheirGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, _, call := withBusyChat(t)
		set := func(perSecond float64) invoke.LearnedRate {
			require.NoError(t, limiter.UpdateGates(map[string]ratelimit.Change{invoke.PrivateGate: ratelimit.Rate(perSecond).Burst(20)}))
			return limiter.Learned()[0]
		}
		took := func(calls int) time.Duration {
			start := time.Now()
			for range calls {
				require.NoError(t, call(t.Context(), to(1)))
			}
			return time.Since(start)
		}
		before := limiter.Learned()[0]
		require.EqualValues(t, 1, before.Ceiling)

		lower := set(0.1)
		require.EqualValues(t, 0.1, lower.Ceiling)
		require.LessOrEqual(t, lower.Rate, 0.1)
		require.GreaterOrEqual(t, took(10), 90*time.Second)

		require.Equal(t, lower, set(0), "a gate that is paused says nothing of what the chat takes")

		require.EqualValues(t, 10, set(10).Ceiling)
		took(200)
		require.Less(t, took(20), 10*time.Second, "it climbs past the old limit")
		require.NoError(t, limiter.UpdateGates(map[string]ratelimit.Change{invoke.GroupGate: {}}))
		require.EqualValues(t, 10, limiter.Learned()[0].Ceiling, "that is not its gate")
	})
}

func TestUnlearnLetsGoThoseWhoWaitForThePaceOfAChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, s, call := withBusyChat(t)
		for range 8 { // down to a crawl
			time.Sleep(10 * time.Second)
			s.put(standing(time.Second, inChat(1)))
			require.NoError(t, call(t.Context(), to(1)))
		}
		require.Less(t, limiter.Learned()[0].Rate, 0.3)
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() { require.NoError(t, call(t.Context(), to(1))) })
		}
		synctest.Wait()
		limiter.Unlearn()
		start := time.Now()
		waiting.Wait()
		require.LessOrEqual(t, time.Since(start), 25*time.Second, "the chat takes one a second")
		require.Empty(t, limiter.Learned())
	})
}

// A hundred calls are queued for a chat when the first flood tells what it takes.
func TestCallsQueuedForAChatKeepToWhatItLearnsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(bucket(0.5, 3, inChat(1)))
		limiter := newLimiter(t, ofBots)
		call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
		start := time.Now()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() { require.NoError(t, call(t.Context(), to(1))) })
		}
		waiting.Wait()
		t.Logf("%d floods, %v", s.all().floods(), time.Since(start))
		require.LessOrEqual(t, s.all().floods(), 20)
		require.LessOrEqual(t, time.Since(start), 300*time.Second)
	})
}

// What is on the wire when the rates are forgotten belongs to what is forgotten.
func TestCallOnTheWireTeachesNothingAfterUnlearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsNever}})
		m, err := invoke.New(invoke.Options{Limiter: limiter})
		require.NoError(t, err)
		defer m.Close()
		var refuse atomic.Bool
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error {
			refused := refuse.Load()
			time.Sleep(time.Second)
			if refused {
				return tgerr.New(420, "FLOOD_WAIT_1")
			}
			return nil
		}))
		teach := func(between func()) {
			refuse.Store(true)
			var waiting sync.WaitGroup
			waiting.Go(func() { require.NoError(t, call(t.Context(), resolve(), nil)) })
			time.Sleep(500 * time.Millisecond)
			refuse.Store(false)
			between()
			waiting.Wait()
		}
		teach(func() {})
		require.Len(t, limiter.Learned(), 1)
		teach(limiter.Unlearn)
		require.Empty(t, limiter.Learned())
		teach(func() {
			require.NoError(t, limiter.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Query: ratelimit.Rate(10)}))
		})
		learned := limiter.Learned()
		require.Len(t, learned, 1)
		require.EqualValues(t, 10, learned[0].Ceiling)
		require.Less(t, learned[0].Rate, 10.0)
	})
}

// A limit is paused and raised while its rate is a learned one, and while a call is out.
func TestPausedLimitKeepsWhatItHasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(2*time.Second, everything))
		limiter := newLimiter(t, invoke.Options{})
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		require.NoError(t, call(t.Context(), resolve()))
		before := limiter.Learned()
		require.Len(t, before, 1)
		set := func(rate float64) {
			require.NoError(t, limiter.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Query: ratelimit.Rate(rate)}))
		}
		set(0)
		require.Zero(t, limiter.Stats()[classify.Query].Limit.Rate)
		var waiting sync.WaitGroup
		waiting.Go(func() { require.NoError(t, call(t.Context(), resolve())) })
		time.Sleep(time.Minute)
		require.Equal(t, before, limiter.Learned())
		set(30)
		waiting.Wait()
		require.Less(t, limiter.Stats()[classify.Query].Limit.Rate, 30.0)
		set(0)
		limiter.Unlearn()
		require.Zero(t, limiter.Stats()[classify.Query].Limit.Rate)
		set(30)
		require.EqualValues(t, 30, limiter.Stats()[classify.Query].Limit.Rate)
	})
}

// A limit of all chats is met by who sends albums to one after the other.
func TestLimitOfAllChatsIsLearnedByWhoSendsAlbums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unknown(1, 1)
		limiter := newLimiter(t, ofBots)
		call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for chat := int64(1); ctx.Err() == nil; chat++ {
			if call(ctx, &tg.MessagesSendMultiMediaRequest{Peer: &tg.InputPeerUser{UserID: chat}, MultiMedia: make([]tg.InputSingleMedia, 10)}) != nil {
				time.Sleep(time.Second)
			}
		}
		learned := limiter.Learned()
		require.NotEmpty(t, learned)
		require.NotZero(t, learned[0].Category, "%+v", learned)
	})
}

// A limit of one call in months is none that a rate could be learned below. It holds all the
// same.
func TestLimitThatIsTooLowToLearnBelowHoldsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(2*time.Second, everything))
		opts := invoke.Options{Store: newDisk()}
		limiter := newLimiter(t, opts)
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		require.NoError(t, call(t.Context(), resolve()))
		require.Len(t, limiter.Learned(), 1)
		low := map[classify.Category]ratelimit.Change{classify.Query: ratelimit.Rate(1e-7).Burst(1)}
		require.NoError(t, limiter.UpdateLimits(low))
		require.Equal(t, 1e-7, limitsOf(limiter, classify.Query).Rate)
		limiter.Close()

		opts.RateLimits = low
		again := newLimiter(t, opts)
		require.Equal(t, 1e-7, limitsOf(again, classify.Query).Rate, "whatever is stored")
		again.Close()
	})
}

// Of a call that costs more than is configured nothing is sent, and nothing follows from it
// either.
func TestCallThatCanNeverPassMakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, s, call := withBusyChat(t)
		s.put(standing(2*time.Second, ofMethods("contacts.resolveUsername")))
		require.NoError(t, call(t.Context(), resolve()))
		before := limitsOf(limiter, classify.Query)
		require.Equal(t, 1, before.Burst)

		require.ErrorIs(t, call(invoke.WithCost(t.Context(), 51), resolve()), ratelimit.ErrImpossible)
		require.Equal(t, before, limitsOf(limiter, classify.Query))

		require.ErrorIs(t, call(invoke.WithCost(t.Context(), 4), to(1)), ratelimit.ErrImpossible)
		time.Sleep(time.Minute)
		start := time.Now()
		for range 3 {
			require.NoError(t, call(t.Context(), to(1)))
		}
		require.Greater(t, time.Since(start), 2*time.Second, "its chat takes one message at a time")
	})
}

// Two calls are on the wire to a chat whose rate is forgotten. Their floods are one event for
// the rate that is learned anew.
func TestCallsOnTheWireTeachAChatOnceAfterUnlearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := ofBots
		opts.Chats.Private = ratelimit.Burst(8) // no more are on the wire at once
		limiter := newLimiter(t, opts)
		m, err := invoke.New(invoke.Options{Limiter: limiter, SleepThreshold: flood.Never})
		require.NoError(t, err)
		defer m.Close()
		answers := make(chan error)
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return <-answers }))
		var sent sync.WaitGroup
		send := func(calls int) {
			for range calls {
				sent.Go(func() { _ = call(t.Context(), to(1), nil) })
			}
			time.Sleep(10 * time.Second)
		}
		answer := func(err error) float64 {
			answers <- err
			synctest.Wait()
			if len(limiter.Learned()) == 0 {
				return 0
			}
			return limiter.Learned()[0].Rate
		}
		flooded := tgerr.New(420, "FLOOD_WAIT_1")
		send(4)
		require.Zero(t, answer(nil))
		require.Zero(t, answer(nil))
		require.Zero(t, answer(nil))
		require.NotZero(t, answer(flooded))
		time.Sleep(5 * time.Second)
		for range 5 {
			send(1)
			require.NotZero(t, answer(nil))
		}
		send(4)
		require.NotZero(t, answer(nil))
		require.NotZero(t, answer(nil))
		limiter.Unlearn()
		once := answer(flooded)
		require.NotZero(t, once)
		require.Equal(t, once, answer(flooded))
		sent.Wait()
	})
}
