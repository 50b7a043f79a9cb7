package limiter

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	contrib "github.com/gotd/contrib/middleware/ratelimit"
	"github.com/gotd/td/bin"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

// 2,000 calls queue one after the other behind a large one, and then go through at
// 10,000 a second. %behind is how many of them returned behind one that came later.
func BenchmarkOrder2000(b *testing.B) {
	const waiters, perSecond, burst = 2000, 10_000, 10_000
	ctx := context.Background()
	for _, lib := range []struct {
		name string
		// new returns a limiter whose bucket is empty: wait takes n tokens, and came tells
		// how many calls have done so or queue for it, of which so many have returned.
		new func(b *testing.B) (wait func(n int) error, came func(returned int) int)
	}{
		{"xtime", func(*testing.B) (func(int) error, func(int) int) {
			l := rate.NewLimiter(perSecond, burst)
			start := time.Now()
			l.AllowN(start, burst)
			return func(n int) error { return l.WaitN(ctx, n) },
				func(int) int { return int(time.Since(start).Seconds()*perSecond-l.Tokens()+0.5) - burst + 1 }
		}},
		{"weir", func(b *testing.B) (func(int) error, func(int) int) {
			l := ratelimit.New(ratelimit.Options{})
			g := newGate(b, l, "gate", ratelimit.Limit{Rate: perSecond, Burst: burst})
			if err := l.Try(burst, g); err != nil {
				b.Fatal(err)
			}
			return func(n int) error { return l.Acquire(ctx, n, g) },
				func(returned int) int { return g.Stats().Waiters + returned }
		}},
	} {
		b.Run("lib="+lib.name, func(b *testing.B) {
			for range b.N {
				wait, came := lib.new(b)
				order := make(chan int, waiters+1)
				call := func(tokens, i int) {
					go func() {
						if err := wait(tokens); err != nil {
							b.Error(err)
						}
						order <- i
					}()
					for came(len(order)) <= i {
						runtime.Gosched()
					}
				}
				call(burst, 0)
				for i := range waiters {
					call(1, i+1)
				}
				if len(order) > 0 {
					b.Fatal("the first left before the last came: the machine is too busy for this figure")
				}
				behind, latest := 0, 0
				for range waiters + 1 {
					i := <-order
					if i < latest {
						behind++
					}
					latest = max(latest, i)
				}
				b.ReportMetric(100*float64(behind)/waiters, "%behind")
			}
		})
	}
}

// counting counts the timers that are made.
type counting struct {
	clock.Clock
	timers atomic.Int64
}

func (c *counting) Timer(d time.Duration) clock.Timer {
	c.timers.Add(1)
	return c.Clock.Timer(d)
}

// What 10,000 calls cost that wait at one gate: timers, and heap and stack for each.
// The goroutines that they wait in are in it: an idle one is lib=goroutine-alone.
func BenchmarkWaiters10k(b *testing.B) {
	const waiters = 10_000
	for _, lib := range []struct {
		name string
		new  func(b *testing.B, c clock.Clock) (wait func(context.Context) error)
	}{
		{"goroutine-alone", func(*testing.B, clock.Clock) func(context.Context) error {
			return func(ctx context.Context) error { <-ctx.Done(); return nil }
		}},
		// x/time takes no clock, so its timers cannot be counted here; contrib, below, has
		// x/time inside and makes them itself.
		{"xtime", func(*testing.B, clock.Clock) func(context.Context) error {
			l := rate.NewLimiter(rate.Every(time.Hour), 1)
			l.Allow()
			return l.Wait
		}},
		{"weir", func(b *testing.B, c clock.Clock) func(context.Context) error {
			l := ratelimit.New(ratelimit.Options{Clock: c})
			g := newGate(b, l, "gate", ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
			if err := l.Try(1, g); err != nil {
				b.Fatal(err)
			}
			return func(ctx context.Context) error { return l.Acquire(ctx, 1, g) }
		}},
		{"contrib", func(b *testing.B, c clock.Clock) func(context.Context) error {
			send := contrib.New(rate.Every(time.Hour), 1).WithClock(c).
				Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return nil }))
			if err := send(b.Context(), nil, nil); err != nil {
				b.Fatal(err)
			}
			return func(ctx context.Context) error { return send(ctx, nil, nil) }
		}},
	} {
		b.Run("lib="+lib.name, func(b *testing.B) {
			for range b.N {
				ctx, cancel := context.WithCancel(context.Background())
				clk := &counting{Clock: clock.System}
				wait := lib.new(b, clk)
				heapBefore, stackBefore := heap(), stack()
				var wg sync.WaitGroup
				for range waiters {
					wg.Go(func() { _ = wait(ctx) }) // it ends with the context's error
				}
				// All have come to rest when two looks, a while apart, see the same.
				for last := int64(-1); ; {
					time.Sleep(100 * time.Millisecond)
					now := heap() + stack()
					if now-last < waiters/100 && last-now < waiters/100 {
						break
					}
					last = now
				}
				b.ReportMetric(float64(heap()-heapBefore)/waiters, "heap-B/waiter")
				b.ReportMetric(float64(stack()-stackBefore)/waiters, "stack-B/waiter")
				if lib.name == "weir" || lib.name == "contrib" {
					b.ReportMetric(float64(clk.timers.Load()), "timers")
				}
				cancel()
				wg.Wait()
			}
		})
	}
}

func stack() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}
