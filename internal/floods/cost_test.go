package floods_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// crowds are ways in which many floods can stand at a time.
var crowds = map[string]func(b *floods.Tracker, n int64){
	"slow mode": func(b *floods.Tracker, n int64) {
		answer(b, n, send, flood.Notice{Kind: flood.SlowMode, Wait: time.Hour})
	},
	"one flood met by all that was on the wire": func(b *floods.Tracker, n int64) {
		answer(b, n, send, flood.Notice{Kind: flood.FloodWait, Wait: time.Hour})
	},
	"many methods": func(b *floods.Tracker, n int64) {
		method := func(i int64) floods.Call { return floods.Call{Method: fmt.Sprint("a.m", i)} }
		answer(b, n, method, flood.Notice{Kind: flood.FloodWait, Wait: time.Hour})
	},
	"chats with successes in between": func(b *floods.Tracker, n int64) {
		for chat := range n {
			answer(b, 1, func(int64) floods.Call { return send(chat + 1) }, flood.Notice{Kind: flood.FloodWait, Wait: time.Hour})
			p, err := b.Wait(context.Background(), send(-1), 0)
			if err != nil {
				panic(err)
			}
			b.Start(&p)
			b.Passed(p)
		}
	},
	"ended early": func(b *floods.Tracker, n int64) {
		answer(b, n, send, flood.Notice{Kind: flood.SlowMode, Wait: time.Hour})
		b.Clear(nil)
	},
}

// answer floods n calls that are on the wire together.
func answer(b *floods.Tracker, n int64, call func(int64) floods.Call, notice flood.Notice) {
	passes := make([]floods.Pass, n)
	for i := range passes {
		p, err := b.Wait(context.Background(), call(int64(i)+1), 0)
		if err != nil {
			panic(err)
		}
		passes[i] = p
	}
	for _, p := range passes {
		b.Flooded(p, notice)
	}
}

func TestFloodLooksAtFewOfThoseThatStand(t *testing.T) {
	const standing, more = 20_000, 100
	for name, crowd := range crowds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{Journal: true})
				crowd(b, standing)
				for kind, notice := range map[string]flood.Notice{
					"as long":   {Kind: flood.FloodWait, Wait: time.Hour},
					"longer":    {Kind: flood.FloodWait, Wait: 90 * time.Minute},
					"shorter":   {Kind: flood.FloodWait, Wait: time.Second},
					"slow mode": {Kind: flood.SlowMode, Wait: time.Minute},
				} {
					before := b.Looked()
					for i := range int64(more) {
						p := floods.Pass{Call: send(-100 - i)} // it was on the wire before all of them
						b.Flooded(p, notice)
					}
					// Up to 64 are compared for the method and as many for the account.
					require.Less(t, b.Looked()-before, more*4*64, kind)
				}
				// That they are over costs a look at each.
				before := b.Looked()
				time.Sleep(3 * time.Hour)
				require.Empty(t, b.Snapshot())
				require.LessOrEqual(t, b.Looked()-before, standing+10*more)
			})
		})
	}
}

func BenchmarkFloodAmongMany(b *testing.B) {
	for name, crowd := range crowds {
		for _, n := range []int64{1000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				tracker := floods.New(floods.Options{Journal: true})
				crowd(tracker, n)
				notice := flood.Notice{Kind: flood.SlowMode, Wait: time.Minute}
				b.ReportAllocs()
				for i := int64(0); b.Loop(); i++ {
					notice.Kind = flood.FloodWait + flood.Kind(i%2)*(flood.SlowMode-flood.FloodWait)
					tracker.Flooded(floods.Pass{Call: send(-100 - i%1000)}, notice)
				}
			})
		}
	}
}
