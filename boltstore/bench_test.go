package boltstore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
)

// Durable charges by callers at the same time, each to its own key.
func BenchmarkCharge(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, err := boltstore.Open(filepath.Join(b.TempDir(), "weir.db"), boltstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			w := quota.Window{Limit: quota.MaxLimit, Period: 24 * time.Hour, Kind: quota.Bucket}
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for caller := range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						r := quota.Request{Key: fmt.Sprint(caller), Window: w, Cost: 1, Record: true}
						if got, err := s.Decide(context.Background(), r); err != nil || got.Limited {
							b.Error(got, err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "charges/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
