package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/ratelimit"
)

// An operation of a history: what one goroutine did to two gates, and what it saw.
type linearInput struct {
	kind  string // try, acquire, refund, tick, burst
	cost  int
	wide  bool // the wide gate only
	value int  // tick: tokens of time; burst: the new burst
}

// linearState is the whole of the model: tokens and bursts of the two gates, both of
// one token a second.
type linearState struct{ narrow, wide, narrowBurst, wideBurst int }

func linearStep(s linearState, in linearInput, ok bool) (bool, linearState) {
	room := s.wide >= in.cost && (in.wide || s.narrow >= in.cost)
	move := func(by int) {
		s.wide = min(s.wide+by, s.wideBurst)
		if !in.wide {
			s.narrow = min(s.narrow+by, s.narrowBurst)
		}
	}
	switch in.kind {
	case "try":
		if ok != room {
			return false, s
		}
		if ok {
			move(-in.cost)
		}
	case "acquire": // with a context that is done: it takes nothing, whatever the room
		return !ok, s
	case "refund":
		move(in.cost)
	case "tick":
		s.narrow, s.wide = min(s.narrow+in.value, s.narrowBurst), min(s.wide+in.value, s.wideBurst)
	case "burst":
		s.narrowBurst = in.value
		s.narrow = min(s.narrow, s.narrowBurst)
	}
	return true, s
}

// Histories of real goroutines, on a clock that they move themselves: whatever the
// interleaving, it has to be one that a sequential limiter could have shown.
func TestHistoriesAreLinearizable(t *testing.T) {
	model := porcupine.Model{
		Init: func() any { return linearState{narrow: 4, wide: 8, narrowBurst: 4, wideBurst: 8} },
		Step: func(state, input, output any) (bool, any) {
			return linearStep(state.(linearState), input.(linearInput), output.(bool))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %v", input, output) },
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for seed := range uint64(200) {
		c := &handClock{now: time.Unix(1e9, 0)}
		l := ratelimit.New(ratelimit.Options{Clock: c})
		narrow, wide := newGate(t, l, "narrow", 1, 4), newGate(t, l, "wide", 1, 8)
		var (
			mu      sync.Mutex
			history []porcupine.Operation
			wg      sync.WaitGroup
			begin   = time.Now()
		)
		for client := range 4 {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			wg.Go(func() {
				for range 12 {
					in := linearInput{
						kind: []string{"try", "try", "try", "acquire", "refund", "tick", "burst"}[random.IntN(7)],
						cost: 1 + random.IntN(3), wide: random.IntN(2) == 0, value: 1 + random.IntN(5),
					}
					gates := []ratelimit.Gate{narrow, wide}
					if in.wide {
						gates = gates[1:]
					}
					call, ok := time.Since(begin), false
					switch in.kind {
					case "try":
						ok = l.Try(in.cost, gates...) == nil
					case "acquire":
						ok = l.Acquire(done, in.cost, gates...) == nil
					case "refund":
						l.Refund(in.cost, gates...)
					case "tick":
						c.move(time.Duration(in.value) * time.Second)
					case "burst":
						_ = l.Update(map[ratelimit.Gate]ratelimit.Change{narrow: ratelimit.Burst(in.value)})
					}
					// A try above the burst is refused as impossible, which is no room as well.
					mu.Lock()
					history = append(history, porcupine.Operation{
						ClientId: client, Input: in, Call: int64(call), Output: ok, Return: int64(time.Since(begin)),
					})
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.True(t, porcupine.CheckOperations(model, history), "seed %d", seed)
	}
}
