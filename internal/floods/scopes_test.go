package floods_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// kept is what a store has, written and read as JSON.
type kept map[string][]byte

func (s kept) put(t fataler, records ...flood.Record) {
	for _, r := range records {
		if r.Until.IsZero() {
			delete(s, r.Key())
			continue
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		s[r.Key()] = text
	}
}

func (s kept) all(t fataler) (records []flood.Record) {
	for key, text := range s {
		var r flood.Record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if r.Key() != key {
			t.Fatalf("kept under %q, is %q", key, r.Key())
		}
		records = append(records, r)
	}
	return records
}

type fataler interface{ Fatalf(string, ...any) }

func stands(records []flood.Record, now time.Time) []string {
	var out []string
	for _, r := range records {
		if r.Kind == flood.SlowMode {
			r.Method = "slow"
		}
		out = append(out, fmt.Sprint(r.Scope, r.DC, r.Method, r.Chat, r.Reads, r.Inferred, r.Until.Sub(now)))
	}
	slices.Sort(out)
	return out
}

// The model follows the tracker, and what the tracker says of its changes is at any time
// enough to make another one that holds back the same.
func TestScopesAreInferredAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1e9, 0)
		hand := &handClock{now: start}
		b := floods.New(floods.Options{Clock: hand, Journal: true})
		store := kept{}
		m := &model{now: start, state: map[modelKey]standing{}}

		var air []flight
		draw := func(t *rapid.T) floods.Call {
			c := floods.Call{
				DC:     rapid.IntRange(0, 1).Draw(t, "dc"),
				Method: rapid.SampledFrom([]string{"messages.sendMessage", "messages.sendMedia", "messages.editMessage", "messages.getHistory", "users.getUsers", "updates.getChannelDifference"}).Draw(t, "method"),
				Chat:   rapid.Int64Range(0, 3).Draw(t, "chat"),
			}
			c.Reads = c.Method == "messages.getHistory" || c.Method == "users.getUsers" || c.Method == "updates.getChannelDifference"
			return c
		}
		// land takes one call off the wire, if there is any.
		land := func(end func(*rapid.T, flight)) func(*rapid.T) {
			return func(t *rapid.T) {
				if len(air) > 0 {
					i := rapid.IntRange(0, len(air)-1).Draw(t, "which")
					f := air[i]
					air = slices.Delete(air, i, i+1)
					end(t, f)
				}
			}
		}
		wait := func(t *rapid.T) time.Duration {
			return time.Duration(rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(8, 90)).Draw(t, "seconds")) * time.Second
		}
		send := func(t *rapid.T) {
			c := draw(t)
			p, err := b.Wait(t.Context(), c, 0)
			until := m.until(c)
			if e, ok := errors.AsType[*flood.WaitError](err); ok != !until.IsZero() || ok && !e.Until.Equal(until) {
				t.Fatalf("%v: %v, want until %v", c, err, until)
			}
			if err == nil {
				air = append(air, m.sent(p))
			}
		}
		fail := land(func(t *rapid.T, f flight) {
			d := wait(t)
			b.Flooded(f.pass, flood.Notice{Kind: flood.FloodWait, Wait: d})
			m.flooded(f, d)
		})
		t.Repeat(map[string]func(*rapid.T){
			"send": send, "send more": send, "send still more": send,
			"flood": fail, "flood again": fail,
			"slow mode": land(func(t *rapid.T, f flight) {
				if c := f.pass.Call; c.Method == "messages.sendMessage" || c.Method == "messages.sendMedia" {
					d := wait(t)
					b.Flooded(f.pass, flood.Notice{Kind: flood.SlowMode, Wait: d})
					m.slowMode(f, d)
				}
			}),
			"pass": land(func(_ *rapid.T, f flight) {
				b.Passed(f.pass)
				m.passed(f)
			}),
			"leave": land(func(_ *rapid.T, f flight) {
				b.Abandon(f.pass)
				m.left(f)
			}),
			"time": func(t *rapid.T) {
				ms := rapid.OneOf(rapid.IntRange(1, 4000), rapid.IntRange(1, 4000), rapid.IntRange(4000, 30_000)).Draw(t, "ms")
				hand.now = hand.now.Add(time.Duration(ms) * time.Millisecond)
				m.now = hand.now
			},
			"restore": func(t *rapid.T) {
				hand.now = hand.now.Add(time.Millisecond) // it is none that has just ended
				m.now = hand.now
				c, d := draw(t), wait(t)
				rec := flood.Record{DC: c.DC, Kind: flood.FloodWait, Until: hand.now.Add(d), Wait: d, Hits: 1}
				switch rapid.IntRange(1, 3).Draw(t, "scope") {
				case 1:
					rec.Scope, rec.Method, rec.Chat = flood.Chat, c.Method, c.Chat+1
				case 2:
					rec.Scope, rec.Method = flood.Method, c.Method
					rec.Why = rapid.SampledFrom([]string{"", "two chats"}).Draw(t, "why")
					rec.Inferred = rec.Why != ""
				case 3:
					rec.Scope, rec.Reads, rec.Inferred, rec.Why = flood.Account, c.Reads, true, "two methods"
				}
				store.put(t, b.Changes()...)
				known := slices.IndexFunc(b.Snapshot(), func(r flood.Record) bool {
					return r.Key() == rec.Key() && !r.Until.Before(rec.Until)
				})
				b.Restore(rec)
				m.restore(rec)
				if known < 0 {
					store.put(t, rec)
				}
				if changes := b.Changes(); len(changes) != 0 {
					t.Fatalf("tells what it was told: %+v", changes)
				}
			},
			"": func(t *rapid.T) {
				got, want := stands(b.Snapshot(), hand.now), m.snapshot(m.stands)
				if !slices.Equal(got, want) {
					t.Fatalf("stands %q, want %q", got, want)
				}
				store.put(t, b.Changes()...)
				again := floods.New(floods.Options{Clock: hand})
				again.Restore(store.all(t)...)
				want = m.snapshot(m.ahead)
				if got := stands(again.Snapshot(), hand.now); !slices.Equal(got, want) {
					t.Fatalf("restored %q, want %q", got, want)
				}
			},
		})
	})
}

func TestAClockThatIsSetBackDoesNotLengthenAFlood(t *testing.T) {
	hand := &handClock{now: time.Unix(1e9, 0)}
	b := floods.New(floods.Options{Clock: hand})
	flooded(t, b, send(1), "FLOOD_WAIT_10")
	hand.now = hand.now.Add(-time.Hour)
	if left := held(t, b, send(1)).Wait; left != 10*time.Second {
		t.Fatal(left)
	}
	hand.now = hand.now.Add(10 * time.Second)
	sent(t, b, send(1))
}

// until is when the next call may go, zero for now.
func (m *model) until(c floods.Call) (until time.Time) {
	for _, k := range covering(c) {
		s := m.state[k]
		at := s.until
		over := 10 * time.Second
		if s.hits > 3 {
			over = time.Minute
		}
		if k.guess && s.wait > over && s.nextProbe.Before(at) {
			at = s.nextProbe
		}
		if s.first != 0 && s.turn.After(m.now) {
			at = s.turn
		}
		if m.stands(k) && at.After(m.now) && at.After(until) {
			until = at
		}
	}
	return until
}

// sent notes that the call is let go: it goes first, where no other does.
func (m *model) sent(p floods.Pass) flight {
	m.calls++
	for _, k := range covering(p.Call) {
		if s := m.state[k]; m.stands(k) {
			s.first, s.turn = m.calls, m.now.Add(5*time.Second)
			m.state[k] = s
		}
	}
	return flight{p, m.calls, m.floods}
}

func (m *model) snapshot(counts func(modelKey) bool) []string {
	var out []string
	for k, s := range m.state {
		if counts(k) {
			if k.fixed {
				k.method = "slow"
			}
			out = append(out, fmt.Sprint(k.scope, k.dc, k.method, k.chat, k.reads, k.guess, s.until.Sub(m.now)))
		}
	}
	slices.Sort(out)
	return out
}
