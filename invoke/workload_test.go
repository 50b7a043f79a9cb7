package invoke_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// thirty is a client that is configured for 30 messages a second.
func thirty() invoke.Options {
	return invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(30)}}
}

func newLimiter(t testing.TB, opts invoke.Options) *invoke.Limiter {
	t.Helper()
	limiter, err := invoke.NewLimiter(opts)
	require.NoError(t, err)
	t.Cleanup(limiter.Close)
	return limiter
}

// The server allows 10 a second, the client is configured for 30 and works for ten minutes
// without a pause. After the first minute it has at least 90 % of what the server allows.
// It is flooded at most once a minute.
func TestUnknownLimitIsUsed(t *testing.T) {
	for _, mode := range []invoke.ChatMode{invoke.ChatsNever, invoke.ChatsAlways} {
		for _, burst := range []float64{1, 5, 10, 30} {
			t.Run(fmt.Sprintf("mode %v burst %v", mode, burst), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := thirty()
					opts.Chats.Mode = mode
					s, start := unknown(10, burst), time.Now()
					stop := workers(t, connect(t, invoke.Options{Limiter: newLimiter(t, opts)}, s), 32, 1000)
					time.Sleep(10 * time.Minute)
					stop()

					first, rest := s.between(start, 0, time.Minute), s.between(start, time.Minute, 10*time.Minute)
					share := float64(rest.passed()) / (9 * 60 * 10)
					t.Logf("first minute: %d passed, %d floods (%d calls refused, %d into a known flood); the nine after it: %.1f %%, %d floods (%d, %d)",
						first.passed(), first.floods(), first.refused(), first.known(), 100*share, rest.floods(), rest.refused(), rest.known())
					require.GreaterOrEqual(t, share, 0.9)
					// 9, but for one run in two hundred that is unlucky with the order of goroutines.
					require.LessOrEqual(t, rest.floods(), 10)
					require.LessOrEqual(t, rest.refused(), 3*rest.floods(), "with what was on the wire")
					require.LessOrEqual(t, first.known(), 3, "the second chat is what tells that it is the method's")
					require.Zero(t, rest.known())
				})
			})
		}
	}
}

// settled is after how long from a change a stretch of ten seconds begins that has at least
// 90 % of the limit, and, when the limit fell, no flood and no more than 110 %.
func (s *datacenter) settled(change time.Time, limit float64, fell bool) time.Duration {
	after := &datacenter{calls: s.between(change, 0, 2*time.Minute+20*time.Second)}
	for x := time.Duration(0); ; x += 250 * time.Millisecond {
		ten := after.between(change, x, x+10*time.Second)
		share := float64(ten.passed()) / (10 * limit)
		if share >= 0.9 && !(fell && (share > 1.1 || ten.refused() > 0)) || x > 2*time.Minute {
			return x
		}
	}
}

// The limit halves, and doubles three minutes later, at some phases of the minute in which
// the rate is probed.
func TestChangedLimitIsFoundWithinAMinute(t *testing.T) {
	late := 0
	for _, burst := range []float64{1, 5, 10, 30} {
		var fall, rise time.Duration
		for phase := range 6 {
			synctest.Test(t, func(t *testing.T) {
				s := unknown(10, burst)
				stop := workers(t, connect(t, invoke.Options{Limiter: newLimiter(t, thirty())}, s), 32, 1000)
				time.Sleep(4*time.Minute + time.Duration(phase)*10*time.Second)
				s.change(5)
				fell := time.Now()
				time.Sleep(3*time.Minute + time.Duration(phase)*10*time.Second)
				s.change(10)
				rose := time.Now()
				time.Sleep(2*time.Minute + 20*time.Second)
				stop()
				fall, rise = max(fall, s.settled(fell, 5, true)), max(rise, s.settled(rose, 10, false))
				if s.settled(fell, 5, true) > time.Minute {
					late++
				}
				if s.settled(rose, 10, false) > time.Minute {
					late++
				}
			})
		}
		t.Logf("burst %2v, worst of 6: settled %v after the fall, %v after the rise", burst, fall, rise)
	}
	t.Logf("%d of 48 changes took longer than a minute", late)
	require.LessOrEqual(t, late, 1, "one may be unlucky with the order of goroutines")
}
