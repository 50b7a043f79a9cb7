package learn_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/internal/learn"
)

func newRate(t testing.TB, ceiling float64) *learn.Rate {
	r, err := learn.New(ceiling, learn.Options{})
	require.NoError(t, err)
	return r
}

// use sends calls at the rate in force for so many seconds, and returns the time after.
func use(r *learn.Rate, from time.Time, seconds float64) time.Time {
	for end := from.Add(time.Duration(seconds * 1e9)); from.Before(end); {
		from = from.Add(time.Duration(1e9 / r.PerSecond()))
		r.Sent(from, 1)
	}
	return from
}

func TestWithoutFloodsItIsTheCeiling(t *testing.T) {
	r := newRate(t, 30)
	use(r, clock(0), 600)
	require.Equal(t, 30.0, r.PerSecond())
	require.Equal(t, 40.0, r.Burst(40))
	require.False(t, r.Learned())
	require.False(t, r.Moved())
	require.Equal(t, learn.State{}, r.State())
}

func TestThirtyCallsInFlightAreOneEvent(t *testing.T) {
	r := newRate(t, 30)
	var calls []learn.Call
	for i := range 30 {
		calls = append(calls, r.Sent(clock(float64(i)/30), 1))
	}
	require.True(t, r.Flooded(calls[7]))
	after := r.PerSecond()
	require.LessOrEqual(t, after, 0.7*30)
	for _, call := range calls {
		require.False(t, r.Flooded(call))
	}
	require.Equal(t, after, r.PerSecond())
	require.False(t, r.Flooded(learn.Call{}), "a call of which nothing is known")
	require.True(t, r.Flooded(r.Sent(clock(2), 1)), "a call that went out after the lowering is another event")
	require.Less(t, r.PerSecond(), after)
}

func TestTheCurve(t *testing.T) {
	r := newRate(t, 100)
	now := use(r, clock(0), 10)
	require.True(t, r.Flooded(r.Sent(now, 1)))
	held := r.State().Held
	require.LessOrEqual(t, r.PerSecond(), 0.7*0.97*held+1e-9)

	now = use(r, now, 4)
	require.InDelta(t, 0.97*held, r.PerSecond(), 1e-9, "back at the plateau")
	now = use(r, now, 38)
	require.InDelta(t, 0.97*held, r.PerSecond(), 1e-9, "still on it")
	now = use(r, now, 8)
	require.Equal(t, 100.0, r.PerSecond(), "a probe that meets no flood comes to the ceiling")
	require.True(t, r.Learned())
	use(r, now, 70)
	require.False(t, r.Learned(), "and a minute there makes the floods forgotten")
}

func TestAnUnusedRateDoesNotGrow(t *testing.T) {
	for name, every := range map[string]float64{"a call a minute": 60, "half of what it may": 0.2} {
		s := newSim(t, 30, 40, newBucketServer(10, 5), 0)
		s.work(300)
		r := s.rate
		plateau := 0.97 * r.State().Held
		over := 0
		for at := 300.0; at < 300+3600; at += every {
			r.Sent(clock(at), 1)
			if r.PerSecond() > plateau+1e-9 {
				over++
			}
		}
		require.LessOrEqual(t, r.PerSecond(), 1.5*plateau, name)
		t.Logf("%s: above the plateau at %d calls of %.0f", name, over, 3600/every)
	}
}

func TestFloodsComeNoLowerThanTheFloor(t *testing.T) {
	r, err := learn.New(30, learn.Options{Floor: 2})
	require.NoError(t, err)
	for i := range 100 {
		r.Flooded(r.Sent(clock(float64(i)), 1))
		require.GreaterOrEqual(t, r.PerSecond(), 2.0)
	}
	require.Equal(t, 2.0, r.PerSecond())
	require.Equal(t, 0.5, r.Burst(0.5))
	require.Equal(t, 1.0, r.Burst(40))
}

func TestSetCeiling(t *testing.T) {
	r := newRate(t, 30)
	require.NoError(t, r.SetCeiling(20))
	require.Equal(t, 20.0, r.PerSecond())
	require.True(t, r.Moved())
	require.False(t, r.Moved())

	now := use(r, clock(0), 2)
	r.Flooded(r.Sent(now, 1))
	lowered := r.PerSecond()
	require.NoError(t, r.SetCeiling(300))
	require.Equal(t, lowered, r.PerSecond(), "what is learned is no less true")
	require.NoError(t, r.SetCeiling(5))
	require.Equal(t, 5.0, r.PerSecond())
	require.Equal(t, 5.0, r.Ceiling())

	require.ErrorContains(t, r.SetCeiling(math.NaN()), "ceiling is NaN")
	require.Equal(t, 5.0, r.Ceiling())
}

func TestBadOptions(t *testing.T) {
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-300} {
		_, err := learn.New(bad, learn.Options{})
		require.ErrorContains(t, err, "ceiling is")
	}
	for _, bad := range []float64{-1, 31, math.NaN(), math.Inf(1), 1e-300} {
		_, err := learn.New(30, learn.Options{Floor: bad})
		require.ErrorContains(t, err, "Floor is")
	}
}

// A limiter is told of each change of 2 %, and not of each call.
func TestMovedIsSeldom(t *testing.T) {
	s := newSim(t, 30, 40, newBucketServer(10, 5), 0)
	told, last := 0, 30.0
	for s.now < 600 {
		s.work(s.now + 0.05)
		if s.rate.Moved() {
			told++
			last = s.rate.PerSecond()
		}
		require.InEpsilon(t, last, s.rate.PerSecond(), 0.0201)
	}
	t.Logf("told %d times in 10 minutes and %d calls", told, len(s.passed))
	require.Less(t, told, 1000)
}

func TestNothingAllocates(t *testing.T) {
	r := newRate(t, 30)
	now := use(r, clock(0), 2)
	r.Flooded(r.Sent(now, 1))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now = now.Add(50 * time.Millisecond)
		call := r.Sent(now, 1)
		if r.Moved() && r.PerSecond() > 25 {
			r.Flooded(call)
		}
	}))
}
