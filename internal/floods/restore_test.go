package floods_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// restart is what a store and a new process make of the tracker's floods.
func restart(t testing.TB, opts floods.Options, old *floods.Tracker) *floods.Tracker {
	t.Helper()
	store := kept{}
	store.put(t, old.Snapshot()...)
	b := floods.New(opts)
	b.Restore(store.all(t)...)
	return b
}

func TestAFloodOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		part := floods.Call{DC: 2, Method: "upload.getFile", Reads: true}
		flooded(t, b, send(0), "SLOWMODE_WAIT_60")
		flooded(t, b, floods.Call{Method: "a.one"}, "FLOOD_WAIT_40")
		flooded(t, b, floods.Call{Method: "a.two"}, "FLOOD_WAIT_30")
		flooded(t, b, part, "FLOOD_PREMIUM_WAIT_9")
		flooded(t, b, floods.Call{DC: 3, Method: "messages.sendMessage", Chat: -100500}, "FLOOD_WAIT_1209600")
		before := b.Snapshot()
		require.Len(t, before, 6)
		b = restart(t, floods.Options{}, b)
		after := b.Snapshot()
		for i := range before {
			require.True(t, before[i].Until.Equal(after[i].Until))
			before[i].Until = after[i].Until
		}
		require.Equal(t, before, after)

		time.Sleep(5 * time.Second)
		require.Equal(t, 35*time.Second, held(t, b, floods.Call{Method: "a.one"}).Wait)
		sent(t, b, floods.Call{Method: "a.three"}) // to look whether it is the account's
		require.Equal(t, flood.Account, held(t, b, floods.Call{Method: "a.three"}).Scope)
		require.Equal(t, 4*time.Second, held(t, b, part).Wait)
		sent(t, b, floods.Call{Method: "users.getUsers", Reads: true})

		// After the deadline one goes first, as ever.
		gone := make(chan floods.Pass, 2)
		for range 2 {
			go func() { gone <- enter(t, b, part) }()
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)
		b.Passed(<-gone)
		synctest.Wait()
		require.Len(t, gone, 1)
	})
}

func TestARecordIsWrittenForPeople(t *testing.T) {
	text, err := json.Marshal(flood.Record{
		DC: 2, Method: "messages.sendMessage", Chat: -1005, Kind: flood.FloodWait, Scope: flood.Chat,
		Until: time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), Wait: 31 * time.Second, Hits: 3, Repeats: 1, News: true,
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"dc":2,"method":"messages.sendMessage","chat":-1005,"kind":"flood_wait","scope":"chat",
		"until":"2030-01-02T02:04:05.000000006Z","wait_ns":31000000000,"hits":3,"repeats":1}`, string(text))
	_, err = json.Marshal(flood.Record{Scope: flood.Chat})
	require.ErrorContains(t, err, "0 is no kind")
	_, err = json.Marshal(flood.Record{Kind: flood.FloodWait})
	require.ErrorContains(t, err, "0 is no scope")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"kind":"slow"}`), &flood.Record{}), `unknown kind "slow": want a name such as "flood_wait"`)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"scope":"wide"}`), &flood.Record{}), `unknown scope "wide"`)
}

func TestAClockThatWasSetWhileTheProcessWasDown(t *testing.T) {
	hand := &handClock{now: time.Unix(1e9, 0)}
	old := floods.New(floods.Options{Clock: hand})
	flooded(t, old, send(1), "FLOOD_WAIT_300")
	text, err := json.Marshal(old.Snapshot()[0])
	require.NoError(t, err)
	var rec flood.Record
	require.NoError(t, json.Unmarshal(text, &rec))
	for name, tt := range map[string]struct {
		set, left time.Duration
	}{
		"a minute later":   {time.Minute, 4 * time.Minute},
		"back by a day":    {-24 * time.Hour, 5 * time.Minute},
		"forward by a day": {24 * time.Hour, 0},
		"back by a year":   {-365 * 24 * time.Hour, 0}, // not believed
	} {
		t.Run(name, func(t *testing.T) {
			now := &handClock{now: hand.now.Add(tt.set)}
			b := floods.New(floods.Options{Clock: now})
			b.Restore(rec)
			if tt.left == 0 {
				sent(t, b, send(1))
				require.Zero(t, b.Len())
				return
			}
			require.Equal(t, tt.left, held(t, b, send(1)).Wait)
			// Nor does it get longer when the clock is set back once more.
			now.now = now.now.Add(-time.Hour)
			require.LessOrEqual(t, held(t, b, send(1)).Wait, 5*time.Minute)
		})
	}
}

func TestOfTwoDeadlinesTheLaterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		mine := flooded(t, b, send(1), "FLOOD_WAIT_30")
		at := func(d time.Duration) flood.Record {
			r := mine
			r.Until, r.Wait, r.Hits, r.Repeats = time.Now().Add(d), d, 9, 2
			return r
		}
		b.Restore(at(20 * time.Second))
		require.Equal(t, 30*time.Second, held(t, b, send(1)).Wait)
		require.Equal(t, 1, b.Snapshot()[0].Hits)
		b.Restore(at(40*time.Second), at(-time.Second))
		require.Equal(t, 40*time.Second, held(t, b, send(1)).Wait)
		r := b.Snapshot()[0]
		require.Equal(t, []int{9, 2}, []int{r.Hits, r.Repeats})

		// A deadline further ahead than its wait is of a clock that was set back.
		odd := at(24 * time.Hour)
		odd.Wait = 20 * time.Second
		b.Restore(odd)
		require.Equal(t, 40*time.Second, held(t, b, send(1)).Wait)
	})
}

func TestCallsThatWaitHearOfAFloodElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		start := time.Now()
		patient, hasty := make(chan floods.Pass, 1), make(chan error, 1)
		go func() { patient <- enter(t, b, send(1)) }()
		go func() {
			_, err := b.Wait(t.Context(), send(1), 10*time.Second)
			hasty <- err
		}()
		onItsWay := sent(t, b, send(2))
		time.Sleep(time.Second)
		b.Restore(flood.Record{Method: "messages.sendMessage", Kind: flood.FloodWait, Scope: flood.Method, Until: time.Now().Add(time.Minute), Wait: time.Minute})
		require.ErrorIs(t, <-hasty, flood.ErrGivenUp)
		require.Equal(t, time.Second, time.Since(start))
		require.True(t, b.Covered(send(2), onItsWay))
		<-patient
		require.Equal(t, 61*time.Second, time.Since(start))
	})
}

func TestTheCallThatWentFirstIsOvertakenByAFloodElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		r := flooded(t, b, send(1), "FLOOD_WAIT_5")
		gone := make(chan floods.Pass, 3)
		for range 3 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(5 * time.Second)
		overtaken := <-gone
		r.Until, r.Wait = time.Now().Add(5*time.Second), 5*time.Second
		b.Restore(r)
		synctest.Wait()
		require.Empty(t, gone)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1, "answer or no answer")
		b.Passed(overtaken) // sent before, says nothing
		synctest.Wait()
		require.Len(t, gone, 1)
		b.Passed(<-gone)
		<-gone
	})
}

func TestWhatWasToldIsNoEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := func(r flood.Record) flood.Record {
			r.Kind, r.Method, r.Until, r.Wait = flood.FloodWait, "messages.sendMessage", time.Now().Add(time.Minute), time.Minute
			return r
		}
		b := floods.New(floods.Options{})
		before := sent(t, b, send(3))
		b.Restore(told(flood.Record{Scope: flood.Chat, Chat: 1}))
		require.Equal(t, flood.Chat, flooded(t, b, send(2), "FLOOD_WAIT_30").Scope, "one flood is one")

		// A wide one is not refuted by what was sent before, but by what was sent after.
		b.Restore(told(flood.Record{Scope: flood.Method, Why: "chats 1 and 2 were both flooded"}))
		b.Passed(before)
		held(t, b, send(4))
		b.Start(&before)
		b.Passed(before)
		sent(t, b, send(4))
		held(t, b, send(1))
	})
}

func TestAFloodThatComesBackFromTheStoreIsStillEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		r := flooded(t, b, send(1), "FLOOD_WAIT_30")
		r.Until, r.Wait = r.Until.Add(time.Millisecond), r.Wait+time.Millisecond // another clock
		b.Restore(r)
		require.Equal(t, flood.Method, flooded(t, b, send(2), "FLOOD_WAIT_30").Scope)
	})
}

func TestAFloodThatEndedEarlyElsewhereEndsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := floods.New(floods.Options{Journal: true}), floods.New(floods.Options{Journal: true})
		flooded(t, a, send(1), "FLOOD_WAIT_3600")
		flooded(t, a, send(2), "FLOOD_WAIT_3600")
		b.Restore(a.Changes()...)
		held(t, b, send(3))
		gone := make(chan floods.Pass, 2)
		for range 2 {
			go func() { gone <- enter(t, b, send(3)) }()
		}
		synctest.Wait()
		a.Clear(func(r flood.Record) bool { return r.Scope == flood.Method })
		b.Restore(a.Changes()...)
		synctest.Wait()
		require.Len(t, gone, 1, "one goes first")
		b.Passed(<-gone)
		synctest.Wait()
		require.Len(t, gone, 1)
		held(t, b, send(1))
		require.Empty(t, b.Changes())

		// What b has met itself is its own.
		flooded(t, b, send(5), "FLOOD_WAIT_60")
		flooded(t, a, send(5), "FLOOD_WAIT_30")
		a.Clear(nil)
		b.Restore(a.Changes()...)
		held(t, b, send(5))
		sent(t, b, send(1))
	})
}

func TestChangesTellWhatAStoreHasToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{Journal: true})
		require.Empty(t, b.Changes())
		one, two := sent(t, b, send(1)), sent(t, b, send(1))
		b.Flooded(one, notice(t, "FLOOD_WAIT_30"))
		r := b.Changes()
		require.Len(t, r, 1)
		require.Equal(t, 30*time.Second, r[0].Wait)
		require.Empty(t, b.Changes(), "once")

		b.Flooded(two, notice(t, "FLOOD_WAIT_5"))
		require.Empty(t, b.Changes(), "that changed nothing")
		quiet := sent(t, b, send(3))
		require.Equal(t, flood.Method, flooded(t, b, send(2), "FLOOD_WAIT_60").Scope)
		require.Len(t, b.Changes(), 2, "the chat's and the method's")
		b.Passed(quiet)
		r = b.Changes()
		require.Len(t, r, 1, "taken back")
		require.Equal(t, flood.Method, r[0].Scope)
		require.True(t, r[0].Until.IsZero())
		require.Equal(t, "flood/0/method/inferred/0/false/messages.sendMessage", r[0].Key())

		b.Clear(func(r flood.Record) bool { return r.Chat == 1 })
		r = b.Changes()
		require.Equal(t, int64(1), r[0].Chat)
		require.True(t, r[0].Until.IsZero())

		// What somebody else knows better is in the store already.
		r[0] = flooded(t, b, send(4), "SLOWMODE_WAIT_5")
		r[0].Until, r[0].Wait = time.Now().Add(time.Minute), time.Minute
		b.Restore(r[0])
		require.Empty(t, b.Changes())

		// What ran out is known by everybody.
		time.Sleep(time.Minute)
		sent(t, b, send(9))
		require.Empty(t, b.Snapshot())
		require.Empty(t, b.Changes())
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		time.Sleep(time.Minute)
		require.Empty(t, b.Changes(), "before anybody asked")
	})
}

func TestAJournalThatNobodyReadsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{Journal: true})
		for round := range int64(50) {
			for chat := range int64(100) {
				flooded(t, b, send(1+chat+100*round), "SLOWMODE_WAIT_5")
			}
			if round%2 == 0 {
				b.Clear(nil)
			}
			time.Sleep(6 * time.Second)
		}
		flooded(t, b, send(1), "SLOWMODE_WAIT_5")
		require.Equal(t, 1, b.Pending())
	})
}
