package floods_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// message is send, as invoke describes it.
func message(chat int64) floods.Call {
	call := send(chat)
	call.Category = classify.Message
	return call
}

// provedWhole floods two chats together, and waits until that is over.
func provedWhole(t *testing.T, b *floods.Tracker) {
	one, other := sent(t, b, message(7)), sent(t, b, message(8))
	require.Equal(t, flood.Chat, b.Flooded(one, notice(t, "FLOOD_WAIT_5")).About)
	r := b.Flooded(other, notice(t, "FLOOD_WAIT_5"))
	require.Equal(t, flood.Method, r.About)
	require.True(t, r.Widened)
	time.Sleep(time.Minute)
	through(t, b, message(9))
}

func TestFloodOfAMethodKnownToBeLimitedAsAWholeNeedsNoSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		provedWhole(t, b)
		before := sent(t, b, message(3))
		pass := sent(t, b, message(1))
		b.Start(&pass)
		r := b.Flooded(pass, notice(t, "FLOOD_WAIT_30"))
		require.Equal(t, flood.Method, r.Scope)
		require.Equal(t, flood.Method, r.About)
		require.True(t, r.Widened)
		require.NotEmpty(t, r.Why)
		require.Equal(t, 30*time.Second, time.Until(r.Until))
		require.Equal(t, flood.Method, held(t, b, message(2)).Scope)

		b.Passed(before)
		held(t, b, message(2))
		later := sent(t, b, floods.Call{Method: "messages.editMessage", Chat: 2})
		b.Passed(later)
		held(t, b, message(2))
	})
}

func TestWhenAFloodIsNotTakenForItsMethodsUnproven(t *testing.T) {
	tests := map[string]struct {
		before func(*testing.T, *floods.Tracker)
		call   floods.Call
		answer string
		known  bool
	}{
		"in a chat where it was flooded just before": {nil, message(7), "FLOOD_WAIT_5", true},
		"ten minutes after the last":                 {func(*testing.T, *floods.Tracker) { time.Sleep(10 * time.Minute) }, message(1), "FLOOD_WAIT_5", false},
		"of an hour":                                 {nil, message(1), "FLOOD_WAIT_3600", false},
		"without a number":                           {nil, message(1), "FLOOD_WAIT", false},
		"of a call that is charged to no category":   {nil, send(1), "FLOOD_WAIT_5", false},
		"of another category":                        {nil, floods.Call{Method: "messages.sendMessage", Chat: 1, Category: classify.Admin}, "FLOOD_WAIT_5", false},
		"of another method":                          {nil, floods.Call{Method: "messages.editMessage", Chat: 1, Category: classify.Message}, "FLOOD_WAIT_5", false},
		"after a call came through that it would have stopped": {func(t *testing.T, b *floods.Tracker) {
			pass, other := sent(t, b, message(1)), sent(t, b, message(2))
			require.Equal(t, flood.Method, b.Flooded(pass, notice(t, "FLOOD_WAIT_5")).Scope)
			b.Start(&other)
			require.Len(t, b.Passed(other), 1)
			time.Sleep(time.Minute)
		}, message(4), "FLOOD_WAIT_5", false},
		"after the history was forgotten": {func(_ *testing.T, b *floods.Tracker) { b.ForgetHistory() }, message(1), "FLOOD_WAIT_5", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{})
				provedWhole(t, b)
				if tt.before != nil {
					tt.before(t, b)
				}
				r := flooded(t, b, tt.call, tt.answer)
				require.Equal(t, flood.Chat, r.Scope)
				require.Equal(t, tt.known, r.Known)
			})
		})
	}
}

func TestCallFloodedAgainIsTakenForItsMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		provedWhole(t, b)
		pass := sent(t, b, message(7))
		pass.Call.Retried = true
		require.Equal(t, flood.Method, b.Flooded(pass, notice(t, "FLOOD_WAIT_5")).Scope)
	})
}

func TestMethodStaysLimitedAsAWholeWhileFloodsKeepComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		provedWhole(t, b)
		for chat := range int64(12) {
			time.Sleep(8 * time.Minute)
			require.Equal(t, flood.Method, flooded(t, b, message(20+chat), "FLOOD_WAIT_5").Scope)
			time.Sleep(time.Minute)
			through(t, b, message(9))
		}
	})
}

// quiet sends to a chat that rests, and is flooded.
func quiet(t *testing.T, b *floods.Tracker, chat int64) flood.Record {
	pass := sent(t, b, message(chat))
	b.Start(&pass)
	pass.Call.Quiet = true
	return b.Flooded(pass, notice(t, "FLOOD_WAIT_5"))
}

func TestChatsAtRestFloodedByTurnsAreTheMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		for chat := range int64(3) {
			r := quiet(t, b, chat+1)
			require.Equal(t, flood.Chat, r.Scope, "only one is held at a time")
			want := flood.Scope(0)
			if chat == 2 {
				want = flood.Method
			}
			require.Equal(t, want, r.About, chat)
			time.Sleep(6 * time.Second)
		}
	})
}

func TestWhatKeepsFloodsOfChatsAtRestApart(t *testing.T) {
	for name, between := range map[string]func(*testing.T, *floods.Tracker){
		"a minute":                           func(*testing.T, *floods.Tracker) { time.Sleep(time.Minute) },
		"a call came through during a flood": func(t *testing.T, b *floods.Tracker) { passes(t, b, message(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{})
				for chat := range int64(6) {
					require.Zero(t, quiet(t, b, chat+1).About)
					time.Sleep(time.Second)
					between(t, b)
					time.Sleep(5 * time.Second)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		for chat := range int64(3) {
			r := quiet(t, b, chat+1)
			time.Sleep(6 * time.Second)
			passes(t, b, message(9)) // when it was over: it says nothing
			require.Equal(t, chat == 2, r.About == flood.Method)
		}
	})
}

// passes sends a call now, which comes through.
func passes(t *testing.T, b *floods.Tracker, call floods.Call) {
	pass := sent(t, b, call)
	b.Start(&pass)
	b.Passed(pass)
}
