package learn_test

import (
	"testing"
	"time"
)

func BenchmarkPerSecond(b *testing.B) {
	r := newRate(b, 30)
	r.Flooded(r.Sent(clock(0), 1))
	b.ReportAllocs()
	for b.Loop() {
		r.PerSecond()
	}
}

func BenchmarkSent(b *testing.B) {
	for _, c := range []struct {
		name string
		used float64 // seconds of use since the flood; below 0 is no flood
	}{{"ceiling", -1}, {"climb", 0.5}, {"plateau", 10}, {"probe", 46}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRate(b, 30)
			now := clock(0)
			if c.used >= 0 {
				r.Flooded(r.Sent(now, 1))
				now = use(r, now, c.used)
			}
			there := *r
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%8 == 0 {
					*r = there // so that it stays in its part of the curve
				}
				r.Sent(now, 1)
			}
		})
	}
}

func BenchmarkFlooded(b *testing.B) {
	r := newRate(b, 1000)
	now := clock(0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		r.Flooded(r.Sent(now, 1))
	}
}
