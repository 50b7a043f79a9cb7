package limiter

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/weirtg/weir/ratelimit"
)

// contend runs cycle b.N times in 64 goroutines together.
func contend(ctx context.Context, b *testing.B, cycle func(ctx context.Context) error) {
	const goroutines = 64
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
//
// It is run with a context that is never done, and with one that could be.
func BenchmarkHandOff64(b *testing.B) {
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, kind := range []struct {
		name string
		ctx  context.Context
	}{{"background", context.Background()}, {"cancellable", cancellable}} {
		b.Run("ctx="+kind.name+"/lib=xsync", func(b *testing.B) {
			s := semaphore.NewWeighted(1)
			contend(kind.ctx, b, func(ctx context.Context) error {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
				s.Release(1)
				return nil
			})
		})
		b.Run("ctx="+kind.name+"/lib=weir", func(b *testing.B) {
			l := ratelimit.New(ratelimit.Options{})
			g := newGate(b, l, "gate", ratelimit.Limit{Rate: 1.0 / 3600, Burst: 1})
			contend(kind.ctx, b, func(ctx context.Context) error {
				if err := l.Acquire(ctx, 1, g); err != nil {
					return err
				}
				l.Refund(1, g)
				return nil
			})
		})
	}
}
