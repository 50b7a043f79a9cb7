package invoke_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
)

// floodedGroup is a bot whose messages to a group were flooded so many times.
func floodedGroup(t *testing.T, opts invoke.Options, floods int) (*invoke.Limiter, func(context.Context, bin.Encoder) error) {
	s := &datacenter{latency: 50 * time.Millisecond}
	limiter := newLimiter(t, opts)
	call := connect(t, invoke.Options{Limiter: limiter}, s)
	for i := range floods {
		for range 3 {
			require.NoError(t, call(t.Context(), toGroup(1)))
		}
		if i > 0 {
			time.Sleep(time.Minute) // the next does not wait for the pace
		}
		s.put(standing(2*time.Second, inChat(-1)))
		require.NoError(t, call(t.Context(), toGroup(1)))
		require.Len(t, limiter.Learned(), 1)
	}
	return limiter, call
}

func toGroupFifteenTimes(t *testing.T, call func(context.Context, bin.Encoder) error) time.Duration {
	start := time.Now()
	for range 15 {
		require.NoError(t, call(t.Context(), toGroup(1)))
	}
	return time.Since(start)
}

func TestAFloodInAGroupIsForgottenByOrdinaryUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, call := floodedGroup(t, ofBots, 1)
		start := time.Now()
		var took []time.Duration
		for range 6 { // an hour
			took = append(took, toGroupFifteenTimes(t, call))
			start = start.Add(10 * time.Minute)
			time.Sleep(time.Until(start))
		}
		t.Logf("15 messages every ten minutes took %v", took)
		for _, d := range took[2:] {
			require.Less(t, d, time.Second)
		}
		require.Empty(t, limiter.Learned())
	})
}

func TestTenMinutesOfRestLeaveNothingOfALesson(t *testing.T) {
	for restarts, last := range map[int]time.Duration{0: 10 * time.Minute, 5: 6 * time.Minute} { // a minute is lost in each
		synctest.Test(t, func(t *testing.T) {
			opts := ofBots
			opts.Store = newDisk()
			limiter, call := floodedGroup(t, opts, 1)
			for range restarts {
				time.Sleep(2 * time.Minute)
				require.NoError(t, call(t.Context(), toGroup(1)))
				time.Sleep(11 * time.Second) // what was learned is stored now
				require.NoError(t, call(t.Context(), toGroup(2)))
				require.Len(t, limiter.Learned(), 1)
				limiter.Close()
				limiter = newLimiter(t, opts)
				call = connect(t, invoke.Options{Limiter: limiter}, &datacenter{latency: 50 * time.Millisecond})
			}
			time.Sleep(last)
			require.Empty(t, limiter.Learned())
			require.Less(t, toGroupFifteenTimes(t, call), time.Second)
			limiter.Close()
			require.NotContains(t, opts.Store.(*disk).keys(), "rate/chat/-1000000000001")
		})
	}
}

func TestWhatManyFloodsTaughtOutlastsAShortRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, _ := floodedGroup(t, ofBots, 6)
		start := time.Now()
		for len(limiter.Learned()) > 0 {
			time.Sleep(time.Minute)
		}
		t.Logf("forgotten after %v", time.Since(start))
		require.InDelta(t, 80*time.Minute, time.Since(start), float64(time.Minute))
	})
}

func TestTheBurstOfACategoryIsWholeAfterTenMinutesOfRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(2*time.Second, everything))
		limiter := newLimiter(t, invoke.Options{})
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		require.NoError(t, call(t.Context(), resolve()))
		require.Equal(t, 1, limitsOf(limiter, classify.Query).Burst)
		time.Sleep(10*time.Minute + 3*time.Second)
		start := time.Now()
		for range 20 {
			require.NoError(t, call(t.Context(), resolve()))
		}
		require.Equal(t, 20*s.latency, time.Since(start))
		require.Equal(t, invoke.DefaultLimits()[classify.Query], limitsOf(limiter, classify.Query))
	})
}

// The category is used without a pause: there is no rest.
func TestALimitThatIsUsedIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unknown(10, 5)
		limiter := newLimiter(t, thirty())
		stop := workers(t, connect(t, invoke.Options{Limiter: limiter}, s), 32, 1000)
		time.Sleep(time.Hour)
		require.Len(t, limiter.Learned(), 1)
		stop()
	})
}

// An observer ends the goroutine of the call that goes first, as a test does that fails there.
func TestObserverThatEndsItsGoroutineAtAdmittedHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Bool
		limiter := newLimiter(t, invoke.Options{})
		m, err := invoke.New(invoke.Options{Limiter: limiter, Observer: invoke.ObserverFunc(func(e invoke.Event) {
			if e.Kind == invoke.Admitted && ends.Swap(false) {
				runtime.Goexit()
			}
		})})
		require.NoError(t, err)
		defer m.Close()
		var sent atomic.Int32
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error {
			if sent.Add(1) == 1 {
				return tgerr.New(420, "FLOOD_WAIT_11")
			}
			return nil
		}))
		require.ErrorIs(t, call(t.Context(), resolve(), nil), flood.ErrGivenUp)
		limiter.Unlearn()
		time.Sleep(2 * time.Second)
		ends.Store(true)
		before := limiter.Available()[classify.Account]
		done := make(chan time.Duration, 3)
		start := time.Now()
		for range 3 {
			go func() {
				if call(t.Context(), resolve(), nil) == nil {
					done <- time.Since(start)
				}
			}()
		}
		require.Equal(t, 9*time.Second, <-done)
		require.Less(t, <-done, 10*time.Second)
		synctest.Wait()
		require.EqualValues(t, 3, sent.Load())
		require.Empty(t, done)
		require.Equal(t, before, limiter.Available()[classify.Account])
	})
}

// The first call after a flood hangs. Others go after flood.FirstTimeout, and no error says
// that there is nothing to wait for.
func TestFirstCallThatHangsAfterAFloodHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := invoke.New(invoke.Options{})
		require.NoError(t, err)
		defer m.Close()
		var sent atomic.Int32
		call := m.Handle(telegram.InvokeFunc(func(ctx context.Context, _ bin.Encoder, _ bin.Decoder) error {
			switch sent.Add(1) {
			case 1:
				return tgerr.New(420, "FLOOD_WAIT_3")
			case 2:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = call(ctx, resolve(), nil) }() // meets the flood, and hangs after it
		synctest.Wait()
		time.Sleep(3500 * time.Millisecond)
		require.EqualValues(t, 2, sent.Load())
		wait := requireWait(t, call(invoke.WithNoWait(t.Context()), resolve(), nil))
		require.Equal(t, flood.AnotherFirst, wait.Reason)
		require.Equal(t, 4500*time.Millisecond, wait.Wait)
		start := time.Now()
		require.NoError(t, call(t.Context(), resolve(), nil))
		require.Equal(t, 4500*time.Millisecond, time.Since(start))
	})
}

// A store that takes longer than the flood lasts leaves no wait of nothing.
func TestAStoreThatIsSlowerThanTheFloodMakesNoWaitOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_1")
		limiter := newLimiter(t, invoke.Options{Store: remote{newDisk(), 1500 * time.Millisecond}})
		m, err := invoke.New(invoke.Options{Limiter: limiter, SleepThreshold: flood.Never})
		require.NoError(t, err)
		defer m.Close()
		wait := requireWait(t, m.Handle(s)(t.Context(), resolve(), nil))
		require.Equal(t, time.Second, wait.Wait)
	})
}
