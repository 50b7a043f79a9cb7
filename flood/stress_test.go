package flood_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

// Whatever happens to the calls, none hangs, none waits longer than it may, and
// nothing is left behind. A call that hung would deadlock the bubble.
func TestNobodyHangs(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			b := flood.NewBook(flood.Options{})
			var wg sync.WaitGroup
			for worker := range uint64(40) {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, worker))
					for range 20 {
						time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
						randomCall(t, b, rnd, false)
					}
				})
			}
			wg.Go(func() {
				for range 10 {
					time.Sleep(7 * time.Second)
					b.Clear(func(r flood.Record) bool { return r.Hits%2 == 0 })
					for _, r := range b.Snapshot() {
						if r.Waiting < 0 {
							t.Errorf("%+v", r)
						}
					}
				}
			})
			wg.Wait()
			require.Zero(t, b.Waiters())
			for _, r := range b.Snapshot() {
				require.Zero(t, r.Waiting, "%+v", r)
			}
			time.Sleep(time.Hour)
			require.Empty(t, b.Snapshot())
			require.Zero(t, b.Len())
		})
	}
}

// randomCall takes one call the whole way, as the user of a Book would.
func randomCall(t *testing.T, b *flood.Book, rnd *rand.Rand, inside bool) {
	call := flood.Call{
		DC:     rnd.IntN(2),
		Method: []string{"messages.sendMessage", "messages.sendMedia", "messages.getHistory"}[rnd.IntN(3)],
		Chat:   rnd.Int64N(3),
		Inside: inside,
	}
	call.Reads = call.Method == "messages.getHistory"
	limit := time.Duration(rnd.IntN(20)) * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := make(chan time.Time, 1)
	if rnd.IntN(4) == 0 {
		stop := time.AfterFunc(time.Duration(rnd.IntN(9000))*time.Millisecond, func() {
			left <- time.Now()
			cancel()
		})
		defer stop.Stop()
	}
	for {
		start := time.Now()
		p, err := b.Enter(ctx, call, limit)
		waited := time.Since(start)
		if waited > limit+time.Second {
			t.Errorf("waited %v with a limit of %v", waited, limit)
		}
		if errors.Is(err, context.Canceled) {
			if cancelled := <-left; waited > max(0, cancelled.Sub(start)) {
				t.Errorf("cancelled after %v, left after %v", cancelled.Sub(start), waited)
			}
			return
		}
		if err != nil {
			if !errors.Is(err, flood.ErrGivenUp) {
				t.Error(err)
			}
			return
		}
		if p.Waited != waited {
			t.Errorf("waited %v and says %v", waited, p.Waited)
		}
		limit -= waited
		time.Sleep(time.Duration(rnd.IntN(3)) * 100 * time.Millisecond) // for tokens
		if b.Covered(call, p) {
			continue
		}
		b.Sent(&p)
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
		if !inside && rnd.IntN(10) == 0 {
			randomCall(t, b, rnd, true)
		}
		n := flood.Notice{Kind: flood.FloodWait, Wait: time.Duration(1+rnd.IntN(6)) * time.Second}
		switch rnd.IntN(9) {
		case 0:
			b.Left(p)
			return
		case 1, 2:
		case 3:
			n.Kind = flood.SlowMode
		case 4:
			n.Kind, n.Wait, n.Unnumbered = flood.Busy, time.Second, true
		case 5:
			n.Kind, n.Wait = flood.PeerFlood, 0
			b.Flooded(p, n)
			return
		default:
			b.Passed(p)
			return
		}
		b.Flooded(p, n)
	}
}
