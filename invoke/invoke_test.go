package invoke_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// server answers calls in place of Telegram.
type server struct {
	mu     sync.Mutex
	calls  int
	answer func(n int, input bin.Encoder) error // n counts from 1
	nested func(ctx context.Context) error
	fill   func(output bin.Decoder)
}

func (s *server) Invoke(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	if s.nested != nil {
		if err := s.nested(ctx); err != nil {
			return err
		}
	}
	if s.fill != nil {
		s.fill(output)
	}
	if s.answer == nil {
		return nil
	}
	return s.answer(n, input)
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// floods answers the first n calls with the message.
func floods(n int, message string) *server {
	return &server{answer: func(i int, _ bin.Encoder) error {
		if i <= n {
			return tgerr.New(420, message)
		}
		return nil
	}}
}

func choke(t testing.TB, opts invoke.Options, s *server) (*invoke.Middleware, telegram.InvokeFunc) {
	t.Helper()
	m, err := invoke.New(opts)
	require.NoError(t, err)
	return m, m.Handle(s)
}

func to(chat int64) *tg.MessagesSendMessageRequest {
	return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: chat}, Message: "hello"}
}

func requireWait(t testing.TB, err error) *flood.WaitError {
	t.Helper()
	var wait *flood.WaitError
	require.ErrorAs(t, err, &wait)
	_, isFlood := tgerr.AsFloodWait(err)
	require.False(t, isFlood, "gotd's uploader would sleep it out again")
	return wait
}

// recorder is an observer that remembers.
type recorder struct {
	mu     sync.Mutex
	events []invoke.Event
}

func (r *recorder) Observe(e invoke.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []string
	for _, e := range r.events {
		kinds = append(kinds, e.Kind.String())
	}
	return kinds
}

func TestCallIsChargedToItsCategoryAndToTheGlobalGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, invoke.Options{}, &server{})
		require.NoError(t, call(t.Context(), to(1), nil))
		require.NoError(t, call(t.Context(), &tg.MessagesGetHistoryRequest{Peer: &tg.InputPeerUser{UserID: 1}}, nil))
		available := m.Limiter().Available()
		require.InDelta(t, 29, available[classify.Message], 1e-9)
		require.InDelta(t, 49, available[classify.Query], 1e-9)
		require.InDelta(t, 38, available[classify.Global], 1e-9)
		require.InDelta(t, 10, available[classify.Media], 1e-9)
		require.InDelta(t, 2.0/40, m.Limiter().Congestion(), 1e-6)
	})
}

func TestShortFloodIsSatOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		s := floods(1, "FLOOD_WAIT_7")
		_, call := choke(t, invoke.Options{Observer: r}, s)
		start := time.Now()
		require.NoError(t, call(t.Context(), to(1), nil))
		require.Equal(t, 7*time.Second, time.Since(start), "once, not twice")
		require.Equal(t, 2, s.count())
		require.Equal(t, []string{"admitted", "sent", "flooded", "retried", "queued", "admitted", "sent"}, r.kinds())
		require.Equal(t, 7*time.Second, r.events[2].Wait)
		require.Equal(t, 2, r.events[5].Attempt)
		require.Equal(t, classify.Peer(1), r.events[2].Chat)
	})
}

func TestLongFloodFailsAtOnceAndTellsWhich(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_74089")
		m, call := choke(t, invoke.Options{}, s)
		m.Limiter().SetDC(2)
		start := time.Now()
		wait := requireWait(t, call(t.Context(), to(1), nil))
		require.Zero(t, time.Since(start))
		require.Equal(t, "messages.sendMessage", wait.Method)
		require.Equal(t, int64(1), wait.Chat)
		require.Equal(t, 2, wait.DC)
		require.Equal(t, 74089*time.Second, wait.Wait)
		require.Equal(t, 1, wait.Attempts)
		require.Equal(t, flood.OverThreshold, wait.Reason)
		require.Equal(t, "FLOOD_WAIT_74089", wait.Server.Message)
	})
}

func TestKnownFloodIsNotWalkedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_3600")
		_, call := choke(t, invoke.Options{}, s)
		requireWait(t, call(t.Context(), to(1), nil))
		for range 100 {
			wait := requireWait(t, call(t.Context(), to(1), nil))
			require.Equal(t, flood.KnownFlood, wait.Reason)
			require.Zero(t, wait.Attempts)
		}
		require.Equal(t, 1, s.count())
		require.NoError(t, call(t.Context(), to(2), nil), "another chat goes on")
		time.Sleep(time.Hour)
		require.NoError(t, call(t.Context(), to(1), nil), "the state is a deadline, and it has passed")
		require.Equal(t, 3, s.count())
	})
}

func TestCallMadeLateInAFloodWaitsForTheRestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_30")
		_, call := choke(t, invoke.Options{}, s)
		requireWait(t, call(t.Context(), to(1), nil))
		time.Sleep(25 * time.Second)
		start := time.Now()
		require.NoError(t, call(t.Context(), to(1), nil))
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestThresholdOfOneCallHoldsOnEveryPath(t *testing.T) {
	for name, tt := range map[string]struct {
		threshold flood.Threshold
		waits     bool
	}{
		"never":           {flood.Never, false},
		"up to 4 seconds": {flood.UpTo(4 * time.Second), false},
		"up to 5 seconds": {flood.UpTo(5 * time.Second), true},
		"always":          {flood.Always, true},
		"default":         {flood.Default, true},
	} {
		check := func(t *testing.T, err error, start time.Time) {
			t.Helper()
			if tt.waits {
				require.NoError(t, err)
				require.Equal(t, 5*time.Second, time.Since(start))
				return
			}
			requireWait(t, err)
			require.Zero(t, time.Since(start))
		}
		t.Run(name+", told by the server", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, call := choke(t, invoke.Options{}, floods(1, "FLOOD_WAIT_5"))
				start := time.Now()
				check(t, call(invoke.WithThreshold(t.Context(), tt.threshold), to(1), nil), start)
			})
		})
		t.Run(name+", known before", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, call := choke(t, invoke.Options{}, floods(1, "FLOOD_WAIT_5"))
				requireWait(t, call(invoke.WithThreshold(t.Context(), flood.Never), to(1), nil))
				start := time.Now()
				check(t, call(invoke.WithThreshold(t.Context(), tt.threshold), to(1), nil), start)
			})
		})
	}
}

func TestContextThatEndsBeforeTheFloodFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, invoke.Options{}, floods(1, "FLOOD_WAIT_5"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		wait := requireWait(t, call(ctx, to(1), nil))
		require.Equal(t, flood.ContextDeadline, wait.Reason)
		require.Zero(t, time.Since(start))
	})
}

func TestNoWaitFailsInPlaceOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		_, call := choke(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1).Burst(1)},
		}, s)
		ctx := invoke.WithNoWait(t.Context())
		require.NoError(t, call(ctx, to(1), nil))
		err := call(ctx, to(2), nil)
		require.ErrorIs(t, err, ratelimit.ErrRejected)
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, time.Second, refused.Wait)

		time.Sleep(time.Minute)
		s.answer = func(int, bin.Encoder) error { return tgerr.New(420, "FLOOD_WAIT_1") }
		requireWait(t, call(ctx, to(1), nil))
		require.Equal(t, 2, s.count())
	})
}

func TestPermitPaysOneDispatchOfItsCategory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m, call := choke(t, invoke.Options{}, s)
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		ctx := invoke.WithPermit(t.Context(), permit)
		left := func() (message, global float64) {
			available := m.Limiter().Available()
			return math.Round(available[classify.Message]), math.Round(available[classify.Global])
		}
		expect := func(wantMessage, wantGlobal float64) {
			t.Helper()
			message, global := left()
			require.Equal(t, [2]float64{wantMessage, wantGlobal}, [2]float64{message, global})
		}
		expect(29, 39)
		require.NoError(t, call(ctx, &tg.MessagesGetHistoryRequest{Peer: &tg.InputPeerUser{UserID: 1}}, nil))
		expect(29, 38) // another category is charged, and leaves the permit alone
		require.NoError(t, call(ctx, to(1), nil))
		expect(29, 38) // paid for already
		require.NoError(t, call(ctx, to(1), nil))
		expect(28, 37) // once
		permit.Return()
		expect(28, 37) // it was used
	})
}

func TestRetryIsChargedEvenWithAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001)},
		}, floods(2, "FLOOD_WAIT_1"))
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		require.NoError(t, call(invoke.WithPermit(t.Context(), permit), to(1), nil))
		require.InDelta(t, 27, m.Limiter().Available()[classify.Message], 0.1)
	})
}

func TestFloodThatComesWhileACallWaitsForTokensGivesThemBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_3600")
		m, call := choke(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1).Burst(2)},
		}, s)
		release := make(chan struct{})
		s.nested = func(context.Context) error { <-release; return nil }
		done := make(chan error)
		for range 3 {
			go func() { done <- call(t.Context(), to(1), nil) }()
		}
		synctest.Wait() // two are on the wire, the third waits for a token
		require.Equal(t, 2, s.count())
		close(release)
		var gaveUp int
		for range 3 {
			if err := <-done; err != nil {
				requireWait(t, err)
				gaveUp++
			}
		}
		require.Equal(t, 2, gaveUp, "the one that was flooded, and the one that waited")
		require.Equal(t, 2, s.count(), "the third was not sent into the flood")
		time.Sleep(time.Second)
		require.InDelta(t, 2, m.Limiter().Available()[classify.Message], 1e-6, "nor was it charged")
	})
}

func TestCancelledCallIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		_, call := choke(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1).Burst(1)},
		}, s)
		require.NoError(t, call(t.Context(), to(1), nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		for range 50 {
			go func() { done <- call(ctx, to(1), nil) }()
		}
		synctest.Wait()
		cancel()
		for range 50 {
			err := <-done
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, "messages.sendMessage not sent, waiting at gate message: context canceled")
		}
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.count())
		require.ErrorIs(t, call(ctx, to(1), nil), context.Canceled)
		require.Equal(t, 1, s.count())
	})
}

func TestCloseAnswersEveryCallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(_ int, input bin.Encoder) error {
			if r, ok := input.(*tg.MessagesSendMessageRequest); ok && r.Peer.(*tg.InputPeerUser).UserID == 1 {
				return tgerr.New(420, "FLOOD_WAIT_9")
			}
			return nil
		}}
		m, call := choke(t, invoke.Options{}, s)
		done := make(chan error)
		for i := range 1000 {
			go func() { done <- call(context.Background(), to(int64(i%2+1)), nil) }()
		}
		synctest.Wait()
		m.Close()
		var closed int
		for range 1000 {
			if errors.Is(<-done, invoke.ErrClosed) {
				closed++
			}
		}
		require.GreaterOrEqual(t, closed, 900)
		require.ErrorIs(t, call(t.Context(), to(3), nil), invoke.ErrClosed)
	})
}

func TestClosingOneClientLeavesTheOtherAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := invoke.NewLimiter(invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1).Burst(1)},
		})
		require.NoError(t, err)
		a, callA := choke(t, invoke.Options{Limiter: shared}, &server{})
		_, callB := choke(t, invoke.Options{Limiter: shared}, &server{})
		require.NoError(t, callB(t.Context(), to(1), nil))
		doneA, doneB := make(chan error), make(chan error)
		go func() { doneA <- callA(t.Context(), to(1), nil) }()
		synctest.Wait()
		go func() { doneB <- callB(t.Context(), to(1), nil) }()
		synctest.Wait()
		start := time.Now()
		a.Close()
		require.ErrorIs(t, <-doneA, invoke.ErrClosed)
		require.NoError(t, <-doneB)
		require.Equal(t, time.Second, time.Since(start), "it moved up in the queue")
	})
}

func TestClientsThatShareALimiterShareItsFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := invoke.NewLimiter(invoke.Options{})
		require.NoError(t, err)
		a, b := floods(1, "FLOOD_WAIT_60"), &server{}
		_, callA := choke(t, invoke.Options{Limiter: shared}, a)
		_, callB := choke(t, invoke.Options{Limiter: shared}, b)
		requireWait(t, callA(t.Context(), to(1), nil))
		requireWait(t, callB(t.Context(), to(1), nil))
		require.Zero(t, b.count())
		require.Len(t, shared.Floods(), 1)
		require.Equal(t, 1, shared.ClearFloods(nil))
		require.NoError(t, callB(t.Context(), to(1), nil))
	})
}

func TestFilePartsRideFreeButNotPastAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m, call := choke(t, invoke.Options{}, s)
		for part := range 1000 {
			require.NoError(t, call(t.Context(), &tg.UploadSaveFilePartRequest{FileID: 1, FilePart: part}, nil))
		}
		require.InDelta(t, 9, m.Limiter().Available()[classify.Media], 1e-6, "one upload is one piece of work")

		s.answer = func(int, bin.Encoder) error { return tgerr.New(420, "FLOOD_WAIT_60") }
		requireWait(t, call(t.Context(), &tg.UploadSaveFilePartRequest{FileID: 1, FilePart: 1000}, nil))
		sent := s.count()
		requireWait(t, call(t.Context(), &tg.UploadSaveFilePartRequest{FileID: 1, FilePart: 1001}, nil))
		require.Equal(t, sent, s.count())
	})
}

func TestPremiumWaitIsRepeatedPastTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		s := floods(50, "FLOOD_PREMIUM_WAIT_3")
		_, call := choke(t, invoke.Options{Logger: zap.New(core)}, s)
		start := time.Now()
		require.NoError(t, call(t.Context(), &tg.UploadSaveFilePartRequest{FileID: 1, FilePart: 7}, nil))
		require.Equal(t, 150*time.Second, time.Since(start))
		require.Equal(t, 51, s.count())
		require.Equal(t, 1, logs.Len(), "one line an hour")
	})
}

func TestStormOfWaitsWithoutANumberEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1000, "FLOOD_WAIT_0")
		_, call := choke(t, invoke.Options{SleepThreshold: flood.UpTo(time.Minute)}, s)
		start := time.Now()
		wait := requireWait(t, call(t.Context(), to(1), nil))
		require.Contains(t, []flood.Reason{flood.OverRetries, flood.OverBudget}, wait.Reason)
		require.LessOrEqual(t, s.count(), invoke.DefaultMaxRetries+1)
		require.Greater(t, time.Since(start), 10*time.Second, "the waits grew")
		require.LessOrEqual(t, time.Since(start), invoke.DefaultMaxWait)
	})
}

func TestSumOfWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1000, "FLOOD_WAIT_9")
		_, call := choke(t, invoke.Options{MaxWait: 20 * time.Second, SleepThreshold: flood.UpTo(15 * time.Second)}, s)
		start := time.Now()
		wait := requireWait(t, call(t.Context(), to(1), nil))
		require.Equal(t, flood.OverBudget, wait.Reason)
		require.Equal(t, 19*time.Second, time.Since(start), "9 s, and one more for a wait that proved too short")
		require.Equal(t, 3, wait.Attempts)
	})
}

func TestOneCallGoesFirstAfterAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int32
		s := &server{}
		s.answer = func(n int, _ bin.Encoder) error {
			if n == 1 {
				return tgerr.New(420, "FLOOD_WAIT_8")
			}
			if n == 2 {
				require.Equal(t, 1, int(inFlight.Add(1)))
				time.Sleep(time.Second)
				most.Store(int32(s.count()))
				inFlight.Add(-1)
			}
			return nil
		}
		_, call := choke(t, invoke.Options{}, s)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, call(t.Context(), to(1), nil)) })
		synctest.Wait()
		for range 1000 {
			wg.Go(func() {
				assert.NoError(t, call(invoke.WithThreshold(t.Context(), flood.Always), to(1), nil))
			})
		}
		wg.Wait()
		require.Equal(t, int32(2), most.Load(), "nobody overtook the one that went first")
	})
}

func TestCallThatIsGivenUpInAFloodSaysThatItWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, invoke.Options{}, floods(1, "FLOOD_WAIT_5"))
		requireWait(t, call(invoke.WithThreshold(t.Context(), flood.Never), to(1), nil))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := call(ctx, to(1), nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "messages.sendMessage not sent, waiting at gate flood")
	})
}

func TestCallMadeFromInsideTheOneThatGoesFirstPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_5")
		m, call := choke(t, invoke.Options{}, s)
		requireWait(t, call(invoke.WithThreshold(t.Context(), flood.Never), to(1), nil))
		time.Sleep(5 * time.Second)
		inner := m.Handle(&server{})
		s.nested = func(ctx context.Context) error { return inner(ctx, to(1), nil) }
		require.NoError(t, call(t.Context(), to(1), nil))
	})
}

func TestObserverThatPanicsHarmsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		_, call := choke(t, invoke.Options{
			Observer: invoke.ObserverFunc(func(invoke.Event) { panic("boom") }),
			Logger:   zap.New(core),
		}, floods(1, "FLOOD_WAIT_1"))
		require.NoError(t, call(t.Context(), to(1), nil))
		require.Equal(t, 1, logs.Len())
	})
}

func TestObserversAreToldEvenIfOnePanics(t *testing.T) {
	r := &recorder{}
	boom := invoke.ObserverFunc(func(invoke.Event) { panic("boom") })
	_, call := choke(t, invoke.Options{Observer: invoke.Observers(boom, nil, r, boom, r)}, &server{})
	require.NoError(t, call(t.Context(), to(1), nil))
	require.Equal(t, []string{"admitted", "admitted", "sent", "sent"}, r.kinds())
}

// Who gives no limiter has one of its own, of which the same observer is told.
func TestObserverIsToldWhatItsOwnLimiterLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		_, call := choke(t, invoke.Options{Observer: r}, floods(1, "FLOOD_WAIT_2"))
		require.NoError(t, call(t.Context(), resolve(), nil))
		require.Contains(t, r.kinds(), "learned")
	})
}

func TestOneLogLineForManyFloodedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		s := &server{answer: func(int, bin.Encoder) error { return tgerr.New(420, "FLOOD_WAIT_60") }}
		_, call := choke(t, invoke.Options{Logger: zap.New(core)}, s)
		for chat := range 20 {
			requireWait(t, call(t.Context(), to(int64(chat+1)), nil))
		}
		require.Equal(t, 1, logs.Len())
		require.Equal(t, "messages.sendMessage", logs.All()[0].ContextMap()["method"])
	})
}

func TestOtherErrorsPassThroughAsTheyCame(t *testing.T) {
	for _, err := range []error{
		tgerr.New(400, "PEER_ID_INVALID"),
		tgerr.New(420, "2FA_CONFIRM_WAIT_604800"),
		tgerr.New(406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_5MIN"),
		context.DeadlineExceeded,
		errors.New("connection cut"),
	} {
		s := &server{answer: func(int, bin.Encoder) error { return err }}
		_, call := choke(t, invoke.Options{}, s)
		require.Equal(t, err, call(t.Context(), to(1), nil))
		require.Equal(t, 1, s.count())
	}
}

func TestPanicBelowLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_5")
		_, call := choke(t, invoke.Options{}, s)
		requireWait(t, call(invoke.WithThreshold(t.Context(), flood.Never), to(1), nil))
		time.Sleep(5 * time.Second)
		s.nested = func(context.Context) error { panic("below") }
		require.Panics(t, func() { _ = call(t.Context(), to(1), nil) })
		s.nested = nil
		require.NoError(t, call(t.Context(), to(1), nil))
	})
}

func TestChoicesOutOfRangeFailBeforeAnythingIsSent(t *testing.T) {
	s := &server{}
	_, call := choke(t, invoke.Options{}, s)
	require.ErrorContains(t, call(invoke.WithCost(t.Context(), 0), to(1), nil), "cost is 0")
	require.ErrorContains(t, call(invoke.WithCategory(t.Context(), classify.Global), to(1), nil), "WithCategory")
	require.ErrorContains(t, call(invoke.WithCategory(t.Context(), 99), to(1), nil), "WithCategory")
	require.ErrorIs(t, call(invoke.WithCost(t.Context(), 31), to(1), nil), ratelimit.ErrImpossible)
	require.Zero(t, s.count())
	require.NoError(t, call(invoke.WithCategory(invoke.WithCost(t.Context(), 10), classify.Media), to(1), nil))
}

func TestBadOptionsAreNamedAllAtOnce(t *testing.T) {
	limiter, err := invoke.NewLimiter(invoke.Options{})
	require.NoError(t, err)
	_, err = invoke.New(invoke.Options{
		Limiter:        limiter,
		RateLimits:     map[classify.Category]ratelimit.Change{},
		MaxWait:        -time.Second,
		SleepThreshold: -5,
	})
	require.ErrorContains(t, err, "Limiter is shared")
	require.ErrorContains(t, err, "MaxWait is -1s")
	require.ErrorContains(t, err, "SleepThreshold is -5ns")

	_, err = invoke.New(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{
		classify.Message: ratelimit.Rate(math.NaN()),
		classify.Media:   ratelimit.Burst(-1),
	}})
	require.ErrorContains(t, err, "message.rate is NaN")
	require.ErrorContains(t, err, "media.burst is -1")

	_, err = invoke.New(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{77: ratelimit.Rate(1)}})
	require.ErrorContains(t, err, "is no category")
	require.ErrorContains(t, limiter.UpdateLimits(map[classify.Category]ratelimit.Change{0: ratelimit.Rate(1)}), "is no category")
}

func TestNamingOnlyTheRateKeepsTheDefaultBurst(t *testing.T) {
	m, err := invoke.New(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{
		classify.Message: ratelimit.Rate(5),
		classify.Media:   ratelimit.Burst(3),
	}})
	require.NoError(t, err)
	stats := m.Limiter().Stats()
	require.Equal(t, ratelimit.Limit{Rate: 5, Burst: 30}, stats[classify.Message].Limit)
	require.Equal(t, ratelimit.Limit{Rate: 5, Burst: 3}, stats[classify.Media].Limit)
	require.Equal(t, ratelimit.Limit{Rate: 30, Burst: 40}, stats[classify.Global].Limit)
}

func TestTryAcquireFailsInsideAnAccountWideFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, bin.Encoder) error { return tgerr.New(420, "FLOOD_WAIT_60") }}
		m, call := choke(t, invoke.Options{}, s)
		for chat := range 2 {
			requireWait(t, call(t.Context(), to(int64(chat+1)), nil))
			requireWait(t, call(t.Context(), &tg.MessagesForwardMessagesRequest{ToPeer: &tg.InputPeerUser{UserID: int64(chat + 1)}}, nil))
		}
		_, err := m.Limiter().TryAcquire(classify.Message)
		wait := requireWait(t, err)
		require.Equal(t, flood.Account, wait.Scope)
		permit, err := m.Limiter().TryAcquire(classify.Query)
		require.NoError(t, err, "reads go on")
		permit.Return()
		_, err = m.Limiter().TryAcquire(classify.Global)
		require.ErrorContains(t, err, "no category of calls")
	})
}
