package limiter

import (
	"context"
	"testing"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

// 3,000 calls one after the other through a limit of 1,000 a second with a burst of 1,
// in real time: %rate is how much of the limit they got. Each call has to sleep, and
// each sleep is too long by what the machine takes to wake up.
func BenchmarkInSequence(b *testing.B) {
	const calls, perSecond = 3000, 1000
	ctx := context.Background()
	for _, lib := range []struct {
		name string
		new  func() (wait func() error)
	}{
		{"xtime", func() func() error {
			l := rate.NewLimiter(perSecond, 1)
			return func() error { return l.Wait(ctx) }
		}},
		{"weir", func() func() error {
			l := ratelimit.New(ratelimit.Options{})
			g := newGate(b, l, "gate", ratelimit.Limit{Rate: perSecond, Burst: 1})
			return func() error { return l.Acquire(ctx, 1, g) }
		}},
		// With its default slack of 10 calls uber makes up for oversleeping, and lets
		// bursts of 11 through after a pause.
		{"uber", func() func() error {
			l := uber.New(perSecond)
			return func() error { l.Take(); return nil }
		}},
		{"uber-without-slack", func() func() error {
			l := uber.New(perSecond, uber.WithoutSlack)
			return func() error { l.Take(); return nil }
		}},
	} {
		b.Run("lib="+lib.name, func(b *testing.B) {
			for range b.N {
				wait := lib.new()
				if err := wait(); err != nil { // the burst
					b.Fatal(err)
				}
				start := time.Now()
				for range calls {
					if err := wait(); err != nil {
						b.Fatal(err)
					}
				}
				least := time.Duration(calls) * time.Second / perSecond
				b.ReportMetric(100*float64(least)/float64(time.Since(start)), "%rate")
			}
		})
	}
}
