package floods_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// wayThrough is all that a call which is not flooded asks of the tracker.
func wayThrough(ctx context.Context, b *floods.Tracker, call floods.Call) {
	p, err := b.Wait(ctx, call, time.Second)
	if err != nil || b.Covered(call, p) {
		panic("held back")
	}
	b.Start(&p)
	b.Passed(p)
}

func BenchmarkEnter(b *testing.B) {
	tracker := floods.New(floods.Options{})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = tracker.Wait(ctx, send(1), time.Second)
	}
}

func BenchmarkWayThrough(b *testing.B) {
	for name, standing := range map[string]int64{"no flood": 0, "1 chat flooded": 1, "1000 chats flooded": 1000} {
		b.Run(name, func(b *testing.B) {
			tracker := floods.New(floods.Options{})
			for chat := range standing {
				n, _ := flood.Parse(420, "SLOWMODE_WAIT_3600")
				p, _ := tracker.Wait(b.Context(), send(chat+2), 0)
				tracker.Flooded(p, n)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				wayThrough(ctx, tracker, send(1))
			}
		})
	}
}

// A look at the journal when nothing changed, which is nearly always.
func BenchmarkChanges(b *testing.B) {
	tracker := floods.New(floods.Options{Journal: true})
	b.ReportAllocs()
	for b.Loop() {
		_ = tracker.Changes()
	}
}

// What another process's flood costs while n stand.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int64{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tracker := floods.New(floods.Options{Journal: true})
			until := time.Now().Add(time.Minute)
			for i := int64(0); b.Loop(); i++ {
				until = until.Add(time.Millisecond)
				tracker.Restore(flood.Record{
					Kind: flood.FloodWait, Scope: flood.Chat, Method: "messages.sendMessage", Chat: 1 + i%n,
					Until: until, Wait: flood.MaxWait,
				})
			}
		})
	}
}

func TestACallThatIsNotFloodedAllocatesNothing(t *testing.T) {
	b := floods.New(floods.Options{})
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(1000, func() { wayThrough(ctx, b, send(1)) }))
	flooded(t, b, send(2), "FLOOD_WAIT_3600")
	require.Zero(t, testing.AllocsPerRun(1000, func() { wayThrough(ctx, b, send(1)) }))
}

// Each call copies its pass several times. Above 64 bytes that is no longer done in registers.
func TestAPassIsSmall(t *testing.T) {
	if size := reflect.TypeFor[floods.Pass]().Size(); size > 64 {
		t.Fatalf("a pass has %d bytes", size)
	}
}
