package limiter

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/weirtg/weir/ratelimit"
)

// contend runs cycle b.N times in 64 goroutines together.
func contend(b *testing.B, cycle func(ctx context.Context) error) {
	const goroutines = 64
	ctx := context.Background()
	b.ReportAllocs()
	var wg sync.WaitGroup
	for i := range goroutines {
		n := b.N / goroutines
		if i < b.N%goroutines {
			n++
		}
		wg.Go(func() {
			for range n {
				if err := cycle(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// One token passed on among 64 goroutines that all wait for it. A gate that refills
// once an hour, and whose one token is given back by whoever has it, is a semaphore of
// one; so both sides do the same work, and no time passes but that of the hand-off.
func BenchmarkHandOff64(b *testing.B) {
	b.Run("lib=xsync", func(b *testing.B) {
		s := semaphore.NewWeighted(1)
		contend(b, func(ctx context.Context) error {
			if err := s.Acquire(ctx, 1); err != nil {
				return err
			}
			s.Release(1)
			return nil
		})
	})
	b.Run("lib=weir", func(b *testing.B) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(b, l, "gate", ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
		contend(b, func(ctx context.Context) error {
			if err := l.Acquire(ctx, 1, g); err != nil {
				return err
			}
			l.Refund(1, g)
			return nil
		})
	})
}
