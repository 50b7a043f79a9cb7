package invoke_test

import (
	"context"
	"testing"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// The whole choke point around a call that is not limited, over the call alone.
func BenchmarkChokePoint(b *testing.B) {
	next := telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return nil })
	open := map[classify.Category]ratelimit.Change{}
	for _, category := range classify.Categories() {
		open[category] = ratelimit.Rate(ratelimit.MaxRate).Burst(1 << 30)
	}
	request := to(1)
	run := func(name string, ctx context.Context, call telegram.InvokeFunc) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(ctx, request, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("bare", b.Context(), next)
	run("choked", b.Context(), invoke.Must(invoke.Options{RateLimits: open}).Handle(next))
	kept := invoke.Must(invoke.Options{RateLimits: open, Store: newDisk()})
	defer kept.Close()
	run("kept", b.Context(), kept.Handle(next))
	seen := 0
	run("observed", b.Context(), invoke.Must(invoke.Options{
		RateLimits: open,
		Observer:   invoke.ObserverFunc(func(invoke.Event) { seen++ }),
	}).Handle(next))
}
