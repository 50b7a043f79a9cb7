package ratelimit_test

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

// open is a limit that a benchmark never meets.
var open = ratelimit.Limit{Rate: ratelimit.MaxRate, Burst: 1 << 30}

func openGates(b *testing.B, names ...string) (*ratelimit.Limiter, []ratelimit.Gate) {
	l := ratelimit.New(ratelimit.Options{})
	var gates []ratelimit.Gate
	for _, name := range names {
		g, err := l.NewGate(name, open)
		if err != nil {
			b.Fatal(err)
		}
		gates = append(gates, g)
	}
	return l, gates
}

// One gate, nobody waiting, beside one Allow of x/time/rate.
func BenchmarkOneGate(b *testing.B) {
	b.Run("weir", func(b *testing.B) {
		l, gates := openGates(b, "g")
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Try(1, gates...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("xtime", func(b *testing.B) {
		l := rate.NewLimiter(ratelimit.MaxRate, 1<<30)
		b.ReportAllocs()
		for b.Loop() {
			if !l.Allow() {
				b.Fatal("refused")
			}
		}
	})
}

// Category and global acquired together, nobody waiting, beside two Waits of
// x/time/rate in a row.
func BenchmarkCategoryAndGlobal(b *testing.B) {
	ctx := context.Background()
	b.Run("weir", func(b *testing.B) {
		l, gates := openGates(b, "category", "global")
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Acquire(ctx, 1, gates...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("xtime", func(b *testing.B) {
		x, y := rate.NewLimiter(ratelimit.MaxRate, 1<<30), rate.NewLimiter(ratelimit.MaxRate, 1<<30)
		b.ReportAllocs()
		for b.Loop() {
			if x.Wait(ctx) != nil || y.Wait(ctx) != nil {
				b.Fatal("refused")
			}
		}
	})
}

// The same from all cores at once.
func BenchmarkCategoryAndGlobalParallel(b *testing.B) {
	ctx := context.Background()
	b.Run("weir", func(b *testing.B) {
		l, gates := openGates(b, "category", "global")
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := l.Acquire(ctx, 1, gates...); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("xtime", func(b *testing.B) {
		x, y := rate.NewLimiter(ratelimit.MaxRate, 1<<30), rate.NewLimiter(ratelimit.MaxRate, 1<<30)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if x.Wait(ctx) != nil || y.Wait(ctx) != nil {
					b.Error("refused")
				}
			}
		})
	})
}

// 64 goroutines at a gate of burst 1 and 100,000 a second: the time of one hand-off
// from waiter to waiter is what stands above 10 µs.
func BenchmarkHandOff(b *testing.B) {
	l := ratelimit.New(ratelimit.Options{})
	g, err := l.NewGate("g", ratelimit.Limit{Rate: 1e5, Burst: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var wg sync.WaitGroup
	for i := range 64 {
		n := b.N / 64
		if i < b.N%64 {
			n++
		}
		wg.Go(func() {
			for range n {
				if err := l.Acquire(context.Background(), 1, g); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
