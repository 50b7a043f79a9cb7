package floods_test

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
	"github.com/weirtg/weir/internal/floods"
)

// Whatever happens to the calls, none hangs, none waits longer than it may, and
// nothing is left behind. A call that hung would deadlock the bubble.
func TestNobodyHangs(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			b := floods.New(floods.Options{})
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
func randomCall(t *testing.T, b *floods.Tracker, rnd *rand.Rand, inside bool) {
	call := floods.Call{
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
		p, err := b.Wait(ctx, call, limit)
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
		b.Start(&p)
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
		if !inside && rnd.IntN(10) == 0 {
			randomCall(t, b, rnd, true)
		}
		n := flood.Notice{Kind: flood.FloodWait, Wait: time.Duration(1+rnd.IntN(6)) * time.Second}
		switch rnd.IntN(9) {
		case 0:
			b.Abandon(p)
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

// told is what the floods that are known for certain say: those of a chat, and those of
// a method that another process met.
type told struct {
	mu    sync.Mutex
	until map[floods.Call]time.Time
}

func (k *told) add(c floods.Call, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if until.After(k.until[c]) {
		k.until[c] = until
	}
}

func (k *told) about(c floods.Call) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	chat, method := k.until[c], k.until[floods.Call{Method: c.Method}]
	if method.After(chat) {
		return method
	}
	return chat
}

// Whatever the book was told before a call took its last look, no call goes into, from
// whichever goroutine it was told.
func TestNeverIntoAKnownFlood(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			b := floods.New(floods.Options{Journal: true})
			known := &told{until: map[floods.Call]time.Time{}}
			call := func(rnd *rand.Rand) floods.Call {
				return floods.Call{Method: []string{"messages.sendMessage", "messages.editMessage"}[rnd.IntN(2)], Chat: 1 + rnd.Int64N(4)}
			}
			var wg sync.WaitGroup
			for worker := range uint64(30) {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, worker))
					for range 60 {
						time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
						c := call(rnd)
						p, err := b.Wait(t.Context(), c, forever)
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
						before := known.about(c)
						if b.Covered(c, p) {
							continue
						}
						if left := time.Until(before); left > 0 {
							t.Errorf("%v went into a flood with %v to go", c, left)
						}
						b.Start(&p)
						time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
						switch rnd.IntN(8) {
						case 0:
							b.Abandon(p)
						case 1:
							n := flood.Notice{Kind: flood.FloodWait, Wait: time.Duration(1+rnd.IntN(3)) * time.Second}
							until := time.Now().Add(n.Wait)
							b.Flooded(p, n)
							known.add(c, until)
						default:
							b.Passed(p)
						}
					}
				})
			}
			for process := range uint64(3) {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, 1000+process))
					for range 60 {
						time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
						c := call(rnd)
						wait := time.Duration(1+rnd.IntN(3)) * time.Second
						r := flood.Record{
							Kind: flood.FloodWait, Scope: flood.Chat, Method: c.Method, Chat: c.Chat,
							Until: time.Now().Add(wait), Wait: wait,
						}
						if rnd.IntN(4) == 0 {
							r.Scope, r.Chat = flood.Method, 0
						}
						b.Restore(r)
						known.add(floods.Call{Method: r.Method, Chat: r.Chat}, r.Until)
						b.Changes()
					}
				})
			}
			wg.Wait()
			require.Zero(t, b.Waiters())
			time.Sleep(time.Hour)
			require.Empty(t, b.Snapshot())
		})
	}
}

// Calls that are refused, and calls that no flood concerns, do not queue for one another.
func TestRefusalsByAKnownFloodAreMadeAtATime(t *testing.T) {
	b := floods.New(floods.Options{})
	one, other := floods.Call{Method: "a.one"}, floods.Call{Method: "a.other"}
	flooded(t, b, send(1), "FLOOD_WAIT_3600")
	flooded(t, b, send(2), "SLOWMODE_WAIT_3600")
	flooded(t, b, one, "FLOOD_PREMIUM_WAIT_3600")
	flooded(t, b, floods.Call{DC: 2, Method: "a.one"}, "FLOOD_WAIT_3600")
	require.Equal(t, flood.Account, flooded(t, b, floods.Call{DC: 2, Method: "a.other"}, "FLOOD_WAIT_3600").Scope)
	done := make(chan struct{})
	go floods.Share(b, func() {
		defer close(done)
		for range 100 {
			for _, c := range []floods.Call{send(1), send(2), one, {DC: 2, Method: "a.one"}, {DC: 2, Method: "a.third"}} {
				held(t, b, c)
			}
			sent(t, b, send(3))
			sent(t, b, other)
		}
	})
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("one of them queues")
	}
}
