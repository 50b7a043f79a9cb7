package floods_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

func TestACallThatWentFirstIsOvertakenByANewFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		late := sent(t, b, send(1))
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		gone := make(chan floods.Pass, 3)
		for range 3 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(5 * time.Second)
		overtaken := <-gone
		b.Flooded(late, notice(t, "FLOOD_WAIT_5"))

		// Another one goes first after the new deadline, answer or no answer.
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)

		// And the old answer, sent before the new flood, opens nothing.
		b.Passed(overtaken)
		synctest.Wait()
		require.Len(t, gone, 1)
		b.Passed(<-gone)
		synctest.Wait()
		require.Len(t, gone, 1)
	})
}

func TestACancelledCallLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_60")
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(3 * time.Second)
			cancel()
		}()
		_, err := b.Wait(ctx, send(1), forever)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "messages.sendMessage in chat 1")
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Zero(t, b.Snapshot()[0].Waiting)

		_, err = b.Wait(ctx, send(2), forever)
		require.ErrorIs(t, err, context.Canceled, "no flood, no leave either")
	})
}

func TestAContextThatEndsBeforeTheFloodIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_60")
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		start := time.Now()
		_, err := b.Wait(ctx, send(1), forever)
		e, ok := errors.AsType[*flood.WaitError](err)
		require.True(t, ok, err)
		require.Equal(t, flood.ContextDeadline, e.Reason)
		require.Zero(t, time.Since(start))
	})
}

func TestAWaitOfAWholeDayIsSaidAndNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		call := floods.Call{DC: 4, Method: "messages.sendMessage", Chat: -100500}
		until := flooded(t, b, call, "FLOOD_WAIT_74089").Until
		start := time.Now()
		_, err := b.Wait(t.Context(), call, flood.Default.Limit())
		require.ErrorIs(t, err, flood.ErrGivenUp)
		require.Zero(t, time.Since(start))
		e, _ := errors.AsType[*flood.WaitError](err)
		require.Equal(t, &flood.WaitError{
			Method: "messages.sendMessage", Chat: -100500, DC: 4, Kind: flood.FloodWait, Scope: flood.Chat,
			Wait: 74089 * time.Second, Until: until, Reason: flood.KnownFlood,
		}, e)
	})
}

func TestTheErrorSaysWhichCallItWasAndIsNoFloodToGotd(t *testing.T) {
	e := &flood.WaitError{
		Method: "upload.getFile", Chat: 42, DC: 2, Kind: flood.FloodWait, Scope: flood.Method,
		Wait: 90 * time.Second, Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		Attempts: 3, Reason: flood.OverThreshold, Server: tgerr.New(420, "FLOOD_WAIT_90"),
	}
	require.EqualError(t, e, "upload.getFile in chat 42 on DC 2: flood_wait of the method, 1m30s left "+
		"(until 2030-01-02T03:04:05Z), sent 3×, given up: longer than the threshold")

	// What gotd's downloader does with whatever error it gets.
	err := error(e)
	again, waited := tgerr.FloodWait(t.Context(), err)
	require.False(t, again)
	require.Equal(t, err, waited)
	_, ok := tgerr.AsFloodWait(err)
	require.False(t, ok)
	_, ok = tgerr.As(err)
	require.False(t, ok)
	require.False(t, tgerr.Is(err, tgerr.ErrFloodWait) || tgerr.IsCode(err, 420))
	require.ErrorIs(t, err, flood.ErrGivenUp)

	seen := map[string]bool{}
	for r := flood.KnownFlood; r <= flood.AnotherFirst; r++ {
		require.NotEqual(t, "unknown reason", r.String())
		require.False(t, seen[r.String()])
		seen[r.String()] = true
	}
}

func TestTheLimitOfACallHoldsOnEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		inFlight := []floods.Pass{sent(t, b, send(1)), sent(t, b, send(1)), sent(t, b, send(0)), sent(t, b, send(1))}
		b.Flooded(inFlight[0], notice(t, "FLOOD_WAIT_10"))
		type result struct {
			after time.Duration
			err   error
		}
		start := time.Now()
		wait := func(limit time.Duration) <-chan result {
			done := make(chan result, 1)
			go func() {
				_, err := b.Wait(t.Context(), send(1), limit)
				done <- result{time.Since(start), err}
			}()
			return done
		}

		// Known beforehand: refused at once.
		r := <-wait(9 * time.Second)
		require.ErrorIs(t, r.err, flood.ErrGivenUp)
		require.Zero(t, r.after)

		ten, fifteen, thirty, hour := wait(10*time.Second), wait(15*time.Second), wait(30*time.Second), wait(time.Hour)
		time.Sleep(5 * time.Second)

		// The flood grows: refused at once, not at the first deadline.
		b.Flooded(inFlight[1], notice(t, "FLOOD_WAIT_8"))
		r = <-ten
		require.Equal(t, 5*time.Second, r.after)
		e, ok := errors.AsType[*flood.WaitError](r.err)
		require.True(t, ok)
		require.Equal(t, 8*time.Second, e.Wait)

		// A wider one arrives.
		time.Sleep(time.Second)
		b.Flooded(inFlight[2], notice(t, "FLOOD_WAIT_22")) // of the method itself
		r = <-fifteen
		require.ErrorIs(t, r.err, flood.ErrGivenUp)
		require.Equal(t, 6*time.Second, r.after)

		// A shorter one changes nothing.
		rec := b.Flooded(inFlight[3], notice(t, "FLOOD_WAIT_1"))
		require.False(t, rec.News)

		// Past the deadline: behind the one that goes first, and that takes too long.
		first, second := hour, thirty
		time.Sleep(22 * time.Second)
		synctest.Wait()
		if len(thirty) == 1 {
			first, second = thirty, hour
		}
		require.NoError(t, (<-first).err)
		r = <-second
		if second == thirty {
			require.ErrorIs(t, r.err, flood.ErrGivenUp)
			require.Equal(t, 31*time.Second, r.after, "a second's grace for the one that goes first")
		}
	})
}

func TestACallInsideAnotherDoesNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		call := floods.Call{Method: "messages.getDialogs", Reads: true}
		flooded(t, b, call, "FLOOD_WAIT_5")
		outer := enter(t, b, call) // goes first
		held(t, b, call)

		call.Inside = true
		inner := sent(t, b, call)
		flooded(t, b, send(1), "FLOOD_WAIT_1") // that concerns it not
		require.False(t, b.Covered(call, inner))
		b.Flooded(inner, notice(t, "FLOOD_WAIT_5"))
		require.True(t, b.Covered(outer.Call, outer), "flooded again: no longer first")

		// It waits for deadlines as any other.
		inner = enter(t, b, call)
		require.Equal(t, 5*time.Second, inner.Waited)
	})
}

func TestAFloodThatArrivesBeforeSendingIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		one, two, other := sent(t, b, send(1)), sent(t, b, send(1)), sent(t, b, send(2))
		require.False(t, b.Covered(send(1), two))
		b.Flooded(one, notice(t, "FLOOD_WAIT_5"))
		require.True(t, b.Covered(send(1), two))
		require.False(t, b.Covered(send(2), other))

		// The one that goes first is not in its own way, but for a new flood.
		straggler := other
		time.Sleep(time.Second)
		gone := make(chan floods.Pass, 2)
		for range 2 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(4 * time.Second)
		first := <-gone
		require.False(t, b.Covered(send(1), first))
		b.Flooded(straggler, notice(t, "FLOOD_WAIT_5")) // of another chat
		require.False(t, b.Covered(send(1), first))
		b.Flooded(two, notice(t, "FLOOD_WAIT_5"))
		require.True(t, b.Covered(send(1), first))

		// It has handed over: nobody hangs.
		time.Sleep(5 * time.Second)
		b.Passed(<-gone)
		synctest.Wait()
		for range 3 {
			sent(t, b, send(1))
		}
	})
}

func TestAWaitWithoutANumberGrowsWhenItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		for _, msg := range []string{"FLOOD_WAIT_0", "FLOOD_WAIT", "FLOOD_SKIP_FAILED_WAIT"} {
			for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
				p := enter(t, b, send(1))
				start := time.Now()
				r := b.Flooded(p, notice(t, msg))
				require.Equal(t, time.Duration(want)*time.Second, r.Until.Sub(start), msg)
			}
			b.Passed(enter(t, b, send(1)))
			require.Empty(t, b.Snapshot())
		}
		// Nor does it help to come back a moment late, without having waited.
		for _, want := range []int{1, 2, 4} {
			r := flooded(t, b, send(1), "FLOOD_WAIT_0")
			require.Equal(t, time.Duration(want)*time.Second, time.Until(r.Until))
			time.Sleep(time.Duration(want)*time.Second + 100*time.Millisecond)
		}
		time.Sleep(4 * time.Second)
		require.Equal(t, time.Second, time.Until(flooded(t, b, send(1), "FLOOD_WAIT_0").Until), "forgotten")
	})
}

func TestAStormOfZeroesInOneSecondIsOneFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		var storm []floods.Pass
		for range 100 {
			storm = append(storm, sent(t, b, send(1)))
		}
		for _, p := range storm {
			r := b.Flooded(p, notice(t, "FLOOD_WAIT_0"))
			require.Equal(t, time.Second, time.Until(r.Until))
		}
		require.Equal(t, 100, b.Snapshot()[0].Hits)
	})
}

func TestThousandsOfFloodedChatsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		for chat := range int64(2000) {
			flooded(t, b, send(chat+1), "SLOWMODE_WAIT_5")
		}
		require.Len(t, b.Snapshot(), 2000)
		require.Equal(t, 2000, b.Len())
		time.Sleep(6 * time.Second)
		sent(t, b, send(5000)) // whoever comes by
		require.Zero(t, b.Len())
	})
}

func TestClearedFloodsLetOneGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_3600")
		through(t, b, send(3))
		flooded(t, b, send(2), "FLOOD_WAIT_3600")
		gone := make(chan floods.Pass, 10)
		for range 10 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		synctest.Wait()
		require.Equal(t, 1, b.Clear(func(r flood.Record) bool { return r.Chat == 1 }))
		synctest.Wait()
		require.Len(t, gone, 1)
		held(t, b, send(2))
		b.Passed(<-gone)
		synctest.Wait()
		require.Len(t, gone, 9)

		require.Equal(t, 1, b.Clear(nil))
		sent(t, b, send(2))
		require.Zero(t, b.Clear(nil))
		require.Empty(t, b.Snapshot())
	})
}

func TestTheSnapshotIsSortedAndTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		read := floods.Call{DC: 2, Method: "users.getUsers", Reads: true}
		flooded(t, b, read, "FLOOD_WAIT_7")
		one, two := sent(t, b, send(7)), sent(t, b, send(5))
		b.Flooded(one, notice(t, "FLOOD_WAIT_20"))
		r := b.Flooded(two, notice(t, "FLOOD_WAIT_10"))
		require.True(t, r.Widened && r.News)

		now := time.Now()
		why := "chats 7 and 5 were both flooded"
		require.Equal(t, []flood.Record{
			{Method: "messages.sendMessage", Kind: flood.FloodWait, Scope: flood.Method, Until: now.Add(10 * time.Second), Wait: 10 * time.Second, Hits: 2, Inferred: true, Why: why},
			{Method: "messages.sendMessage", Chat: 5, Kind: flood.FloodWait, Scope: flood.Chat, Until: now.Add(10 * time.Second), Wait: 10 * time.Second, Hits: 1},
			{Method: "messages.sendMessage", Chat: 7, Kind: flood.FloodWait, Scope: flood.Chat, Until: now.Add(20 * time.Second), Wait: 20 * time.Second, Hits: 1},
			{DC: 2, Method: "users.getUsers", Kind: flood.FloodWait, Scope: flood.Method, Until: now.Add(7 * time.Second), Wait: 7 * time.Second, Hits: 1},
		}, b.Snapshot())
	})
}
