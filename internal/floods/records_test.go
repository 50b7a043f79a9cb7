package floods_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

func TestKeysAreShortAndTellRecordsApart(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	records := []flood.Record{
		{Kind: flood.FloodWait, Scope: flood.Chat, Method: "messages.sendMessage", Chat: 1},
		{Kind: flood.FloodWait, Scope: flood.Chat, Method: "messages.sendMessage", Chat: -1},
		{Kind: flood.FloodWait, Scope: flood.Chat, Method: "messages.sendMedia", Chat: 1},
		{Kind: flood.SlowMode, Scope: flood.Chat, Method: "messages.sendMessage", Chat: 1},
		{Kind: flood.FloodWait, Scope: flood.Method, Method: "messages.sendMessage"},
		{Kind: flood.PremiumWait, Scope: flood.Method, Method: "messages.sendMessage"},
		{Kind: flood.FloodWait, Scope: flood.Method, Method: "messages.sendMessage", DC: 2},
		{Kind: flood.FloodWait, Scope: flood.Account},
		{Kind: flood.FloodWait, Scope: flood.Account, Reads: true},
		{Kind: flood.FloodWait, Scope: flood.Method, Method: long},
		{Kind: flood.FloodWait, Scope: flood.Method, Method: long + "y"},
	}
	seen := map[string]bool{}
	for _, r := range records {
		key := r.Key()
		require.LessOrEqual(t, len(key), 512)
		require.False(t, seen[key], key)
		seen[key] = true
	}
	slow := flood.Record{Kind: flood.SlowMode, Scope: flood.Chat, Method: "messages.sendMedia", Chat: 1}
	require.Equal(t, records[3].Key(), slow.Key(), "slow mode is of the chat")
}

func TestRecordsThatNoTrackerHasWrittenAreIgnored(t *testing.T) {
	good := flood.Record{Kind: flood.FloodWait, Scope: flood.Method, Method: "a.b", Until: time.Now().Add(time.Minute), Wait: time.Minute}
	for name, spoil := range map[string]func(r *flood.Record){
		"no kind":             func(r *flood.Record) { r.Kind = 0 },
		"no wait's kind":      func(r *flood.Record) { r.Kind = flood.PeerFlood },
		"a kind too many":     func(r *flood.Record) { r.Kind = 200 },
		"no scope":            func(r *flood.Record) { r.Scope = 0 },
		"a scope too many":    func(r *flood.Record) { r.Scope = 9 },
		"no method":           func(r *flood.Record) { r.Method = "" },
		"a method of 1 MB":    func(r *flood.Record) { r.Method = strings.Repeat("x", 1<<20) },
		"an account's method": func(r *flood.Record) { r.Scope = flood.Account },
		"a chat's without":    func(r *flood.Record) { r.Scope = flood.Chat },
		"a method's chat":     func(r *flood.Record) { r.Chat = 4 },
		"no wait":             func(r *flood.Record) { r.Wait = 0 },
		"a negative wait":     func(r *flood.Record) { r.Wait = -time.Minute },
		"in 29 days":          func(r *flood.Record) { r.Until = time.Now().Add(29 * 24 * time.Hour) },
		"in a thousand years": func(r *flood.Record) { r.Until = r.Until.AddDate(1000, 0, 0) },
		"over":                func(r *flood.Record) { r.Until = time.Now().Add(-time.Nanosecond) },
	} {
		t.Run(name, func(t *testing.T) {
			b := floods.New(floods.Options{})
			r := good
			spoil(&r)
			b.Restore(r)
			require.Zero(t, b.Len())
			require.LessOrEqual(t, len(r.Key()), 512)
			b.Restore(good, r)
			require.Equal(t, 1, b.Len())
		})
	}
	b := floods.New(floods.Options{})
	r := good
	r.Hits, r.Repeats, r.Wait, r.Why = -5, -5, 1<<62, strings.Repeat("ж", 1000)
	b.Restore(r)
	got := b.Snapshot()[0]
	require.Equal(t, []int{1, 0}, []int{got.Hits, got.Repeats})
	require.Len(t, got.Why, 256)
	require.LessOrEqual(t, got.Wait, flood.MaxWait+64*time.Second)
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`[{"kind":"flood_wait","scope":"chat","method":"messages.sendMessage","chat":1,"until":"2001-09-09T01:47:00Z","wait_ns":20000000000}]`))
	f.Add([]byte(`[{"kind":"slow_mode","scope":"chat","method":"messages.sendMessage","until":"2001-09-09T01:47:00Z","wait_ns":9e18,"hits":-1,"repeats":99999999}]`))
	f.Add([]byte(`[{"kind":"flood_wait","scope":"account","reads":true,"why":"\ud800","until":"9999-12-31T23:59:59Z","wait_ns":1},{"kind":"busy","scope":"method","method":"a.b"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var records []flood.Record
		if json.Unmarshal(text, &records) != nil {
			return
		}
		hand := &handClock{now: time.Unix(1e9, 0)}
		b := floods.New(floods.Options{Clock: hand, Journal: true})
		b.Restore(records...)
		b.Restore(records...)
		for _, r := range b.Snapshot() {
			left := r.Until.Sub(hand.now)
			if left <= 0 || left > r.Wait || r.Wait > flood.MaxWait+64*time.Second || r.Hits < 1 || r.Repeats < 0 {
				t.Fatalf("%+v", r)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back flood.Record
			if err := json.Unmarshal(text, &back); err != nil || back.Key() != r.Key() || len(r.Key()) > 512 {
				t.Fatalf("%s: %v, %q, %q", text, err, back.Key(), r.Key())
			}
			call := floods.Call{DC: r.DC, Method: r.Method, Chat: r.Chat, Reads: r.Reads}
			if _, err := b.Wait(t.Context(), call, 0); err == nil {
				t.Fatalf("not held back: %+v", r)
			}
			again := floods.New(floods.Options{Clock: hand})
			again.Restore(back)
			if again.Len() != 1 {
				t.Fatalf("not restored: %s", text)
			}
		}
		if len(b.Changes()) != 0 {
			t.Fatal("tells what it was told")
		}
		hand.now = hand.now.Add(15 * 24 * time.Hour)
		if len(b.Snapshot()) != 0 || b.Len() != 0 {
			t.Fatalf("never ends: %+v", b.Snapshot())
		}
	})
}
