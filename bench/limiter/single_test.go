package limiter

import (
	"context"
	"testing"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/ratelimit"
)

// open is a limit that a benchmark never meets.
var open = ratelimit.Limit{Rate: ratelimit.MaxRate, Burst: 1 << 30}

func newOpen() *rate.Limiter { return rate.NewLimiter(rate.Limit(open.Rate), open.Burst) }

func newGate(tb testing.TB, l *ratelimit.Limiter, name string, rule ratelimit.Rule) ratelimit.Gate {
	tb.Helper()
	g, err := l.NewGate(name, rule)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func newGates(tb testing.TB, l *ratelimit.Limiter, name string, rule ratelimit.Rule) *ratelimit.Gates {
	tb.Helper()
	g, err := l.NewGates(name, rule)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// One gate where nobody waits: Try beside Allow, and beside uber's Take, which has no
// form that does not wait.
func BenchmarkOneGate(b *testing.B) {
	b.Run("lib=xtime", func(b *testing.B) {
		l := newOpen()
		b.ReportAllocs()
		for b.Loop() {
			if !l.Allow() {
				b.Fatal("refused")
			}
		}
	})
	b.Run("lib=weir", func(b *testing.B) {
		l := ratelimit.New(ratelimit.Options{})
		g := newGate(b, l, "gate", open)
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Try(1, g); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lib=uber", func(b *testing.B) {
		l := uber.New(int(open.Rate))
		b.ReportAllocs()
		for b.Loop() {
			l.Take()
		}
	})
}

// threeGates is what a send passes: its chat, its category, the account.
func threeGates(tb testing.TB) (l *ratelimit.Limiter, chats *ratelimit.Gates, category, global ratelimit.Gate) {
	l = ratelimit.New(ratelimit.Options{})
	return l, newGates(tb, l, "chat", open), newGate(tb, l, "category", open), newGate(tb, l, "global", open)
}

// Chat, category and global acquired together by one of a hundred chats in turn,
// where nobody waits, beside two Waits of x/time in a row: category and global, for
// it has no chats.
func BenchmarkChatCategoryGlobal(b *testing.B) {
	ctx := context.Background()
	b.Run("lib=xtime", func(b *testing.B) {
		category, global := newOpen(), newOpen()
		b.ReportAllocs()
		for b.Loop() {
			if category.Wait(ctx) != nil || global.Wait(ctx) != nil {
				b.Fatal("refused")
			}
		}
	})
	b.Run("lib=weir", func(b *testing.B) {
		l, chats, category, global := threeGates(b)
		b.ReportAllocs()
		for i := uint64(0); b.Loop(); i++ {
			if err := l.Acquire(ctx, 1, chats.Key(i%100), category, global); err != nil {
				b.Fatal(err)
			}
		}
	})
	// The like of what x/time does: no chat.
	b.Run("lib=weir-without-chat", func(b *testing.B) {
		l, _, category, global := threeGates(b)
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Acquire(ctx, 1, category, global); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The same from all cores at once.
func BenchmarkChatCategoryGlobalParallel(b *testing.B) {
	ctx := context.Background()
	b.Run("lib=xtime", func(b *testing.B) {
		category, global := newOpen(), newOpen()
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if category.Wait(ctx) != nil || global.Wait(ctx) != nil {
					b.Error("refused")
				}
			}
		})
	})
	b.Run("lib=weir", func(b *testing.B) {
		l, chats, category, global := threeGates(b)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := uint64(0); pb.Next(); i++ {
				if err := l.Acquire(ctx, 1, chats.Key(i%100), category, global); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("lib=weir-without-chat", func(b *testing.B) {
		l, _, category, global := threeGates(b)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := l.Acquire(ctx, 1, category, global); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
