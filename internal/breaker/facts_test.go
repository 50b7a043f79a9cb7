package breaker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/breaker"
	"github.com/weirtg/weir/store"
)

// fact is how a store keeps the refusal.
func fact(t testing.TB, r flood.Refusal) store.Fact {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return store.Fact{
		Key: fmt.Sprintf("refusal/%v/%d/%s", r.Kind, r.DC, r.Method), Value: text, Until: time.Now().Add(breaker.Kept),
	}
}

// keep is a store.
type keep map[string]store.Fact

func (s keep) put(t testing.TB, facts ...store.Fact) {
	t.Helper()
	for _, f := range facts {
		require.NoError(t, f.Validate())
		if s[f.Key] = f; f.Value == nil {
			delete(s, f.Key)
		}
	}
}

func (s keep) restore(b *breaker.Breaker) {
	for _, f := range s {
		b.Restore(f)
	}
}

func TestACrashLoopDoesNotHammerAfterATrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := keep{}
		b := newBreaker(t, breaker.Options{})
		refuse(t, b, send(1), 19, 401, "SESSION_REVOKED")
		require.Empty(t, b.Changes(), "a trip is kept, a count is not")
		require.Equal(t, 1, refuse(t, b, send(1), 1, 401, "SESSION_REVOKED"))
		kept.put(t, b.Changes()...)
		require.Empty(t, b.Changes(), "each is reported once")

		for range 100 {
			time.Sleep(time.Hour)
			b = newBreaker(t, breaker.Options{})
			kept.restore(b)
			require.Empty(t, b.Changes(), "what came from the store")
			require.Equal(t, 20, local(t, b, send(1)).Count)
		}
		require.Equal(t, 1, b.Passed(breaker.Call{Method: "auth.signIn"}))
		kept.put(t, b.Changes()...)
		require.Empty(t, kept, "forgotten everywhere")
	})
}

func TestATripInOneProcessStopsTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newBreaker(t, breaker.Options{}), newBreaker(t, breaker.Options{})
		share := func(from, to *breaker.Breaker) {
			for _, f := range from.Changes() {
				to.Restore(f)
			}
		}
		refuse(t, two, send(1), 10, 400, "PEER_FLOOD")
		refuse(t, one, send(1), 20, 400, "PEER_FLOOD")
		trip := one.Changes()
		for _, f := range trip {
			two.Restore(f)
		}
		require.Equal(t, 20, local(t, two, send(1)).Count)
		require.Equal(t, one.Snapshot()[0].Tripped, two.Snapshot()[0].Tripped.Local())
		require.Empty(t, two.Changes(), "the one is not told of it again")

		time.Sleep(time.Second)
		two.Clear(nil)
		share(two, one)
		require.NoError(t, one.Check(send(1)))
		require.Empty(t, one.Changes())

		// The store may still report what was cleared, but not for ever.
		two.Restore(trip[0])
		require.NoError(t, two.Check(send(1)), "an echo")
		time.Sleep(time.Second)
		refuse(t, one, send(1), 20, 400, "PEER_FLOOD")
		share(one, two)
		local(t, two, send(1))
	})
}

func TestATripThatAnEarlierVersionKeptHolds(t *testing.T) {
	b := newBreaker(t, breaker.Options{})
	b.Restore(store.Fact{
		Key:   "refusal/spam_limited/0/messages.sendMessage",
		Value: []byte(`{"kind":"spam_limited","method":"messages.sendMessage","at":["2001-09-09T01:46:00Z"],"tripped":"2001-09-09T01:46:00Z","code":400,"message":"PEER_FLOOD"}`),
		Until: time.Now().Add(time.Hour),
	})
	require.NotContains(t, local(t, b, send(1)).Error(), "refused 0")
}

func TestAClockSetWhileTheBreakerWasDown(t *testing.T) {
	hand := &handClock{now: time.Unix(1e9, 0)}
	b := newBreaker(t, breaker.Options{Clock: hand})
	refuse(t, b, send(1), 10, 400, "PEER_FLOOD")
	refuse(t, b, send(1), 20, 401, "SESSION_REVOKED")
	trips := b.Changes()
	for _, set := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		now := &handClock{now: hand.now.Add(set)}
		again := newBreaker(t, breaker.Options{Clock: now})
		for _, f := range trips {
			again.Restore(f)
		}
		require.Len(t, again.Snapshot(), 1, "counts start over, what has tripped stays so")
		require.Equal(t, flood.AuthGone, local(t, again, send(1)).Kind)
		require.False(t, again.Snapshot()[0].Tripped.After(now.now))
	}

	// Nor does a count stay for a day when the clock of a running process is set back.
	hand.now = hand.now.Add(-24 * time.Hour)
	require.Len(t, b.Snapshot(), 1)
}

func TestFactsThatNoBreakerHasMadeAreIgnored(t *testing.T) {
	good := flood.Refusal{Kind: flood.SpamLimited, Method: "a.b", Tripped: time.Now(), Code: 400, Message: "PEER_FLOOD"}
	for name, spoil := range map[string]func(r *flood.Refusal){
		"a kind too many":     func(r *flood.Refusal) { r.Kind = 99 },
		"no method":           func(r *flood.Refusal) { r.Method = "" },
		"a data centre":       func(r *flood.Refusal) { r.DC = 2 },
		"another message":     func(r *flood.Refusal) { r.Message = "FLOOD_WAIT_3" },
		"another code":        func(r *flood.Refusal) { r.Code = 500 },
		"a method of the key": func(r *flood.Refusal) { r.Kind, r.Code, r.Message = flood.AuthGone, 401, "SESSION_REVOKED" },
		"a ban's method":      func(r *flood.Refusal) { r.Kind, r.Code, r.Message = flood.AccountBanned, 401, "USER_DEACTIVATED" },
		"a count":             func(r *flood.Refusal) { r.Tripped, r.Count, r.Since = time.Time{}, 19, time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker(t, breaker.Options{})
			r := good
			spoil(&r)
			text, err := json.Marshal(r)
			if err == nil {
				b.Restore(store.Fact{Key: fmt.Sprintf("refusal/%v/%d/%s", r.Kind, r.DC, r.Method), Value: text, Until: time.Now().Add(time.Hour)})
			}
			other := fact(t, good)
			other.Key = "refusal/spam_limited/0/a.c"
			b.Restore(other)
			b.Restore(store.Fact{Key: fact(t, good).Key, Value: []byte(`"x"`), Until: time.Now().Add(time.Hour)})
			require.Empty(t, b.Snapshot())
			b.Restore(fact(t, good))
			require.Len(t, b.Snapshot(), 1)
		})
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"kind":"spam_limited","method":"a.b","count":20,"tripped":"2001-09-09T01:46:00Z","code":400,"message":"PEER_FLOOD"}`))
	f.Add([]byte(`{"kind":"auth_gone","dc":2,"since":"9999-09-09T01:46:00Z","tripped":"9999-09-09T01:46:00Z","code":401,"message":"SESSION_REVOKED"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		hand := &handClock{now: time.Unix(1e9, 0)}
		b := newBreaker(t, breaker.Options{Clock: hand})
		var r flood.Refusal
		if json.Unmarshal(text, &r) != nil {
			return
		}
		kept := store.Fact{Key: fmt.Sprintf("refusal/%v/%d/%s", r.Kind, r.DC, r.Method), Value: text, Until: hand.now.Add(time.Hour)}
		b.Restore(kept)
		b.Restore(kept)
		for _, r := range b.Snapshot() {
			if r.Tripped.IsZero() || r.Tripped.After(hand.now) {
				t.Fatalf("%+v", r)
			}
			call := breaker.Call{Method: r.Method, DC: r.DC}
			e, ok := errors.AsType[*flood.PermanentError](b.Check(call))
			if !ok {
				t.Fatalf("%+v stops nothing", r)
			}
			_ = e.Error()
			if b.Clear(nil) != 1 {
				t.Fatal("not cleared")
			}
			changes := b.Changes()
			if len(changes) != 1 || changes[0].Key != kept.Key || changes[0].Value != nil {
				t.Fatalf("%+v", changes)
			}
		}
		if err := b.Check(send(1)); err != nil {
			t.Fatal(err)
		}
	})
}
