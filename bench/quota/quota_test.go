package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirtg/weir/quota"
)

// The limit is not met, so that each charge is recorded, and nothing is over before the
// benchmark is, but for the hits of a sliding window of few keys: 10 ms are some 20
// charges of each then, as a window of any length has them that allows as many.
const (
	limit  = 1 << 20
	period = 10 * 365 * 24 * time.Hour
)

// limiter charges a key.
type limiter interface{ charge(key string) bool }

// fixed is what a bot writes for itself: a count for each key, and when it started. It
// forgets nothing.
type fixed struct {
	mu   sync.Mutex
	keys map[string]*count
}

type count struct {
	start time.Time
	n     int
}

func (f *fixed) charge(key string) bool {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.keys[key]
	if c == nil {
		c = &count{start: now}
		f.keys[key] = c
	}
	if now.Sub(c.start) >= period {
		*c = count{start: now}
	}
	if c.n >= limit {
		return false
	}
	c.n++
	return true
}

// xtime is a token bucket for each key. It forgets nothing.
type xtime struct{ keys sync.Map }

func (x *xtime) charge(key string) bool {
	l, ok := x.keys.Load(key)
	if !ok {
		l, _ = x.keys.LoadOrStore(key, rate.NewLimiter(rate.Every(period/limit), limit))
	}
	return l.(*rate.Limiter).Allow()
}

// weir counts in memory, in windows of one kind.
type weir struct {
	l *quota.Limiter
	w quota.Window
}

func newWeir(b *testing.B, kind quota.Kind, limit int) weir {
	l, err := quota.New(quota.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return weir{l, quota.Window{Limit: limit, Period: period, Kind: kind}}
}

func (w weir) charge(key string) bool {
	got, err := w.l.Charge(context.Background(), key, w.w)
	return err == nil && !got.Limited
}

func libs(b *testing.B) []struct {
	name string
	make func() limiter
} {
	type lib = struct {
		name string
		make func() limiter
	}
	all := []lib{
		{"fixed", func() limiter { return &fixed{keys: make(map[string]*count)} }},
		{"xtime", func() limiter { return new(xtime) }},
	}
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		all = append(all, lib{"weir-" + kind.String(), func() limiter { return newWeir(b, kind, limit) }})
	}
	return all
}

func keys(n int) []string {
	all := make([]string, n)
	for i, at := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		all[i] = quota.Key("award", int64(-1001234567890), 5_000_000_000+at)
	}
	return all
}

// One charge, of one of so many keys that have been charged before, by one caller and
// by as many as there are cores.
func BenchmarkCharge(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		keys := keys(n)
		for _, lib := range libs(b) {
			l := lib.make()
			if w, ok := l.(weir); ok && w.w.Kind == quota.Sliding && n == 1000 {
				w.w.Period = 10 * time.Millisecond
				l = w
			}
			for _, key := range keys {
				l.charge(key)
			}
			runtime.GC()
			b.Run(fmt.Sprintf("keys=%d/callers=1/lib=%s", n, lib.name), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if !l.charge(keys[i]) {
						b.Fatal("refused")
					}
					if i++; i == len(keys) {
						i = 0
					}
				}
			})
			b.Run(fmt.Sprintf("keys=%d/callers=%d/lib=%s", n, runtime.GOMAXPROCS(0), lib.name), func(b *testing.B) {
				var starts atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					i := int(starts.Add(1)*333_333) % len(keys)
					for pb.Next() {
						if !l.charge(keys[i]) {
							b.Error("refused")
						}
						if i++; i == len(keys) {
							i = 0
						}
					}
				})
			})
		}
	}
}

// heap is the memory in use after what is garbage has gone.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Bytes for each of 1,000,000 keys, the key included: each lib is given a copy of its
// own, as a key that is made for a call is. charges is how often each key was charged.
func BenchmarkBytesAKey(b *testing.B) {
	const n = 1_000_000
	measure := func(b *testing.B, l limiter, charges int) {
		for b.Loop() {
			before := heap()
			for range charges {
				for i := range n {
					l.charge(quota.Key("award", int64(-1001234567890), 5_000_000_000+i))
				}
			}
			b.ReportMetric(float64(heap()-before)/n, "B/key")
			runtime.KeepAlive(l)
		}
	}
	for _, lib := range libs(b) {
		b.Run("charges=1/lib="+lib.name, func(b *testing.B) { measure(b, lib.make(), 1) })
	}
	b.Run("charges=3/lib=weir-sliding", func(b *testing.B) { measure(b, newWeir(b, quota.Sliding, 3), 3) })
}
