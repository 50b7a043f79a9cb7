package floods_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

func TestARepeatedFloodHoldsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		again := func(msg string) time.Duration {
			p := enter(t, b, send(1))
			start := time.Now()
			return b.Flooded(p, notice(t, msg)).Until.Sub(start)
		}
		require.Equal(t, 100*time.Second, again("FLOOD_WAIT_100"))
		for i, extra := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 64, 64} {
			require.Equal(t, (100+extra)*time.Second, again("FLOOD_WAIT_100"))
			r := b.Snapshot()[0]
			require.Equal(t, i+1, r.Repeats)
			require.Equal(t, i+2, r.Hits)
			require.Equal(t, (100+extra)*time.Second, r.Wait)
		}
		require.Equal(t, 6*time.Second, again("FLOOD_WAIT_3"), "at most twice the wait")

		// A call that comes through makes it start over.
		b.Passed(enter(t, b, send(1)))
		require.Equal(t, 100*time.Second, again("FLOOD_WAIT_100"))
		require.Zero(t, b.Snapshot()[0].Repeats)
	})
}

func TestFloodsOfOneStormAreNoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		var storm []floods.Pass
		for range 30 {
			storm = append(storm, sent(t, b, send(1)))
		}
		for _, p := range storm[:29] {
			require.Equal(t, 10*time.Second, time.Until(b.Flooded(p, notice(t, "FLOOD_WAIT_10")).Until))
		}
		require.Equal(t, 1, b.Flooded(enter(t, b, send(1)), notice(t, "FLOOD_WAIT_10")).Repeats)
		require.Equal(t, 1, b.Flooded(storm[29], notice(t, "FLOOD_WAIT_10")).Repeats, "that one is old")
	})
}

func TestExactWaitsAreTrusted(t *testing.T) {
	for _, msg := range []string{"SLOWMODE_WAIT_30", "FLOOD_PREMIUM_WAIT_30"} {
		synctest.Test(t, func(t *testing.T) {
			b := floods.New(floods.Options{})
			for range 5 {
				p := enter(t, b, send(1))
				r := b.Flooded(p, notice(t, msg))
				require.Equal(t, 30*time.Second, time.Until(r.Until))
				require.Zero(t, r.Repeats)
			}
		})
	}
}

func TestARepeatIsRememberedOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_10")
		require.Equal(t, 1, b.Flooded(enter(t, b, send(1)), notice(t, "FLOOD_WAIT_10")).Repeats)
		b = restart(t, floods.Options{}, b)
		r := b.Flooded(enter(t, b, send(1)), notice(t, "FLOOD_WAIT_10"))
		require.Equal(t, 2, r.Repeats)
		require.Equal(t, 12*time.Second, time.Until(r.Until))
	})
}

func TestWhoWasLetGoIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		require.Zero(t, b.Opens(sent(t, b, send(1))))
		wait := func(n int, call floods.Call) chan floods.Pass {
			gone := make(chan floods.Pass, n)
			for range n {
				go func() { gone <- enter(t, b, call) }()
			}
			synctest.Wait()
			return gone
		}

		// Nobody waits, nobody is let go.
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		p := enter(t, b, send(1))
		require.Zero(t, b.Opens(p))
		b.Passed(p)

		// The account's.
		flooded(t, b, floods.Call{Method: "a.one"}, "FLOOD_WAIT_5")
		require.Equal(t, flood.Account, flooded(t, b, send(2), "FLOOD_WAIT_3").Scope)
		gone := wait(5, floods.Call{Method: "a.two"})
		other := wait(3, send(7))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, len(gone)+len(other))
		var first floods.Pass
		select {
		case first = <-gone:
		case first = <-other:
		}
		require.Equal(t, floods.Released{Scope: flood.Account, Calls: 7}, b.Opens(first))
		synctest.Wait()
		require.Zero(t, len(gone)+len(other), "not yet")
		require.Empty(t, b.Passed(first))
		synctest.Wait()
		require.Equal(t, 7, len(gone)+len(other))

		// In slow mode they go one by one.
		flooded(t, b, send(3), "SLOWMODE_WAIT_5")
		gone = wait(3, send(3))
		time.Sleep(5 * time.Second)
		for range 3 {
			p := <-gone
			require.Zero(t, b.Opens(p))
			b.Passed(p)
		}
	})
}
