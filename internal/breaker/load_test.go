package breaker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/breaker"
)

func TestABreakerIsBounded(t *testing.T) {
	b := newBreaker(t, breaker.Options{Limit: 1})
	for i := range 5_000 {
		_, _ = b.Refused(breaker.Call{Method: fmt.Sprint("a.m", i)}, tgerr.New(400, "PEER_FLOOD"))
	}
	require.Len(t, b.Snapshot(), 1024)
	for i := range 5_000 {
		b.Restore(fact(t, flood.Refusal{Kind: flood.SpamLimited, Method: fmt.Sprint("c.m", i), Tripped: time.Now(), Code: 400, Message: "PEER_FLOOD"}))
	}
	require.Len(t, b.Snapshot(), 1024)
	for round := range 10 {
		b.Clear(nil)
		for i := range 1000 {
			_, _ = b.Refused(breaker.Call{Method: fmt.Sprint("b.m", round, ".", i)}, tgerr.New(400, "PEER_FLOOD"))
		}
	}
	require.LessOrEqual(t, len(b.Changes()), 2048)
}

func TestABreakerUnderManyCalls(t *testing.T) {
	b := newBreaker(t, breaker.Options{Limit: 5})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 500 {
				call := breaker.Call{Method: fmt.Sprint("a.m", i%7), DC: i % 2}
				if b.Check(call) != nil {
					b.Clear(func(r flood.Refusal) bool { return r.Method == call.Method })
				}
				switch (i + worker) % 5 {
				case 0:
					_, _ = b.Refused(call, tgerr.New(400, "PEER_FLOOD"))
				case 1:
					_, _ = b.Refused(call, tgerr.New(401, "SESSION_REVOKED"))
				case 2:
					for _, f := range b.Changes() {
						b.Restore(f)
					}
				case 3:
					b.Passed(breaker.Call{Method: "auth.signIn"})
				default:
					b.Passed(call)
					b.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	b.Clear(nil)
	require.NoError(t, b.Check(breaker.Call{Method: "a.m1"}))
}

func TestCallsAllocateNothingWhateverIsRefused(t *testing.T) {
	for name, refusals := range map[string]int{"nothing refused": 0, "something counted": 1, "something tripped": 20} {
		b := newBreaker(t, breaker.Options{})
		refuse(t, b, breaker.Call{Method: "messages.addChatUser"}, refusals, 400, "PEER_FLOOD")
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_ = b.Check(send(1))
			b.Passed(send(1))
		}), name)
	}
}

// All that a call which is answered asks of a breaker.
func BenchmarkCall(b *testing.B) {
	for name, refusals := range map[string]int{"nothing refused": 0, "something counted": 1, "something tripped": 20} {
		b.Run(name, func(b *testing.B) {
			tested := newBreaker(b, breaker.Options{})
			refuse(b, tested, breaker.Call{Method: "messages.addChatUser"}, refusals, 400, "PEER_FLOOD")
			b.ReportAllocs()
			for b.Loop() {
				_ = tested.Check(send(1))
				tested.Passed(send(1))
			}
		})
	}
}
