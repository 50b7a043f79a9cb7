package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
)

func newWindow(t testing.TB, l *ratelimit.Limiter, w ratelimit.Window) ratelimit.Gate {
	t.Helper()
	g, err := l.NewGate("window", w)
	require.NoError(t, err)
	return g
}

func TestSlidingWindowIsNeitherEarlyNorLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		l := ratelimit.New(ratelimit.Options{})
		g := newWindow(t, l, ratelimit.Window{Limit: 3, Period: day})
		start := time.Now()
		for _, at := range []time.Duration{0, time.Hour, 23 * time.Hour} {
			time.Sleep(at - time.Since(start))
			require.NoError(t, l.Try(1, g))
		}
		time.Sleep(day - time.Nanosecond - time.Since(start))
		require.Error(t, l.Try(1, g), "the first is not a day old yet")
		time.Sleep(time.Nanosecond)
		require.NoError(t, l.Try(1, g))
		require.Error(t, l.Try(1, g))
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.Equal(t, day+time.Hour, time.Since(start))
	})
}

// A token bucket of 20 in a minute with a burst of 20 lets 39 through.
func TestWindowKeepsTwentyInAMinuteInEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newWindow(t, l, ratelimit.Window{Limit: 20, Period: time.Minute})
		start := time.Now()
		var times []time.Duration
		for len(times) < 100 {
			require.NoError(t, l.Acquire(t.Context(), 1, g))
			times = append(times, time.Since(start))
			time.Sleep(700 * time.Millisecond)
		}
		for i := 20; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i]-times[i-20], time.Minute)
		}
	})
}

func TestAlignedWindowBeginsOnTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble begins at midnight UTC
		time.Sleep(10*time.Hour + 59*time.Minute + 50*time.Second)
		l := ratelimit.New(ratelimit.Options{})
		g := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Hour, Kind: ratelimit.Aligned})
		require.NoError(t, l.Try(2, g))
		start := time.Now()
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.Equal(t, 10*time.Second, time.Since(start), "at eleven")
		require.NoError(t, l.Acquire(t.Context(), 2, g))
		require.Equal(t, time.Hour+10*time.Second, time.Since(start), "at twelve")
	})
}

func TestWindowFromTheFirstHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Hour, Kind: ratelimit.FirstHit})
		time.Sleep(17 * time.Minute)
		start := time.Now()
		require.NoError(t, l.Try(1, g))
		time.Sleep(59 * time.Minute)
		require.NoError(t, l.Try(1, g))
		require.NoError(t, l.Acquire(t.Context(), 1, g))
		require.Equal(t, time.Hour, time.Since(start))
		time.Sleep(10 * time.Hour)
		require.Equal(t, 2.0, g.Stats().Tokens)
		require.NoError(t, l.Try(2, g))
		require.Error(t, l.Try(1, g), "it began with the hit, not on the hour")
	})
}

func TestWindowsRefuseWithTheExactWait(t *testing.T) {
	for _, kind := range []ratelimit.WindowKind{ratelimit.Sliding, ratelimit.Aligned, ratelimit.FirstHit} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				g := newWindow(t, l, ratelimit.Window{Limit: 3, Period: time.Minute, Kind: kind})
				for i := range 30 {
					err := l.Try(1+i%3, g)
					if err == nil {
						time.Sleep(7 * time.Second)
						continue
					}
					var refused *ratelimit.RefusedError
					require.ErrorAs(t, err, &refused)
					time.Sleep(refused.Wait - 1)
					require.Error(t, l.Try(1+i%3, g), "denied until the told time")
					time.Sleep(time.Nanosecond)
					require.NoError(t, l.Try(1+i%3, g), "admitted at it")
				}
			})
		})
	}
}

func TestWindowGivesBackAndForgets(t *testing.T) {
	for _, kind := range []ratelimit.WindowKind{ratelimit.Sliding, ratelimit.Aligned, ratelimit.FirstHit} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.New(ratelimit.Options{})
				g := newWindow(t, l, ratelimit.Window{Limit: 3, Period: time.Minute, Kind: kind})
				require.NoError(t, l.Try(3, g))
				l.Refund(2, g)
				require.Equal(t, 2.0, g.Stats().Tokens)
				require.NoError(t, l.Try(2, g))
				l.Refund(100, g)
				require.Equal(t, 3.0, g.Stats().Tokens)
				require.ErrorIs(t, l.Try(4, g), ratelimit.ErrImpossible)
			})
		})
	}
}

func TestWindowLimitChangesUnderWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Options{})
		g := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Minute})
		require.NoError(t, l.Try(2, g))
		done := make(chan error)
		go func() { done <- l.Acquire(t.Context(), 1, g) }()
		synctest.Wait()
		start := time.Now()
		update(t, l, g, ratelimit.To(ratelimit.Window{Limit: 3, Period: time.Minute}))
		require.NoError(t, <-done)
		require.Zero(t, time.Since(start))
		update(t, l, g, ratelimit.To(ratelimit.Window{Limit: 0, Period: time.Minute}))
		require.ErrorIs(t, l.Try(1, g), ratelimit.ErrRejected)
		update(t, l, g, ratelimit.To(ratelimit.Window{Limit: 1, Period: time.Second}))
		require.Error(t, l.Try(1, g))
		time.Sleep(time.Second)
		require.NoError(t, l.Try(1, g))
	})
}

func TestChangesThatDoNotFitTheGateAreRefused(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	window := newWindow(t, l, ratelimit.Window{Limit: 2, Period: time.Minute})
	bucket := newGate(t, l, "bucket", 1, 1)
	for g, changes := range map[ratelimit.Gate][]ratelimit.Change{
		window: {
			ratelimit.Rate(1), ratelimit.Burst(1), ratelimit.To(ratelimit.Limit{Rate: 1, Burst: 1}),
			ratelimit.To(ratelimit.Window{Limit: 1, Period: time.Minute, Kind: ratelimit.Aligned}),
			ratelimit.To(ratelimit.Window{Limit: 1}), ratelimit.To(ratelimit.Window{Limit: -1, Period: 1}),
			ratelimit.Change{}.Inherit(ratelimit.Empty),
		},
		bucket: {ratelimit.To(ratelimit.Window{Limit: 1, Period: 1}), ratelimit.Rate(1).Inherit(77)},
	} {
		for _, change := range changes {
			var bad *ratelimit.LimitError
			require.ErrorAs(t, l.Update(map[ratelimit.Gate]ratelimit.Change{g: change}), &bad)
			require.Equal(t, g.Name(), bad.Gate)
			require.NotEmpty(t, bad.Want)
		}
	}
}

func TestBadWindowsAreNamed(t *testing.T) {
	l := ratelimit.New(ratelimit.Options{})
	for _, tt := range []struct {
		window ratelimit.Window
		field  string
	}{
		{ratelimit.Window{Limit: -1, Period: 1}, "limit"},
		{ratelimit.Window{Limit: 1 << 21, Period: 1}, "limit"},
		{ratelimit.Window{Limit: 1}, "period"},
		{ratelimit.Window{Limit: 1, Period: -1}, "period"},
		{ratelimit.Window{Limit: 1, Period: 101 * 365 * 24 * time.Hour}, "period"},
		{ratelimit.Window{Limit: 1, Period: 60}, "period"}, // meant as seconds
		{ratelimit.Window{Limit: 1, Period: time.Minute, Kind: 9}, "kind"},
	} {
		_, err := l.NewGate("g", tt.window)
		var bad *ratelimit.LimitError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "g", bad.Gate)
		require.Equal(t, tt.field, bad.Field)
	}
}
