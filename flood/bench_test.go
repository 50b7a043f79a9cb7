package flood_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

// wayThrough is all that a call which is not flooded asks of the book.
func wayThrough(ctx context.Context, b *flood.Book, call flood.Call) {
	p, err := b.Enter(ctx, call, time.Second)
	if err != nil || b.Covered(call, p) {
		panic("held back")
	}
	b.Sent(&p)
	b.Passed(p)
}

func BenchmarkEnter(b *testing.B) {
	book := flood.NewBook(flood.Options{})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = book.Enter(ctx, send(1), time.Second)
	}
}

func BenchmarkWayThrough(b *testing.B) {
	for name, floods := range map[string]int64{"no flood": 0, "1 chat flooded": 1, "1000 chats flooded": 1000} {
		b.Run(name, func(b *testing.B) {
			book := flood.NewBook(flood.Options{})
			for chat := range floods {
				n, _ := flood.Parse(420, "SLOWMODE_WAIT_3600")
				p, _ := book.Enter(b.Context(), send(chat+2), 0)
				book.Flooded(p, n)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				wayThrough(ctx, book, send(1))
			}
		})
	}
}

// A look at the journal when nothing changed, which is nearly always.
func BenchmarkChanges(b *testing.B) {
	book := flood.NewBook(flood.Options{Journal: true})
	b.ReportAllocs()
	for b.Loop() {
		_ = book.Changes()
	}
}

// What another process's flood costs while n stand.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int64{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			book := flood.NewBook(flood.Options{Journal: true})
			until := time.Now().Add(time.Minute)
			for i := int64(0); b.Loop(); i++ {
				until = until.Add(time.Millisecond)
				book.Restore(flood.Record{
					Kind: flood.FloodWait, Scope: flood.Chat, Method: "messages.sendMessage", Chat: 1 + i%n,
					Until: until, Wait: flood.MaxWait,
				})
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, msg := range []string{"FLOOD_WAIT_31", "CHAT_ADMIN_REQUIRED"} {
		b.Run(msg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				flood.Parse(420, msg)
			}
		})
	}
}

func TestACallThatIsNotFloodedAllocatesNothing(t *testing.T) {
	b := flood.NewBook(flood.Options{})
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(1000, func() { wayThrough(ctx, b, send(1)) }))
	flooded(t, b, send(2), "FLOOD_WAIT_3600")
	require.Zero(t, testing.AllocsPerRun(1000, func() { wayThrough(ctx, b, send(1)) }))
}
