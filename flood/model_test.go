package flood_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gotd/td/clock"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/flood"
)

// handClock is moved by hand, in both directions. Its times have no monotonic
// reading. Nobody waits on it.
type handClock struct {
	clock.Clock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

// A model of the inference of scopes that knows nothing of waiting, of memory, of
// concurrency: it keeps all that happened and asks the definitions.
type (
	model struct {
		now    time.Time
		floods int                   // so far
		state  map[modelKey]standing // also those over
		proofs []proof
	}
	modelKey struct {
		scope        flood.Scope
		dc           int
		method       string
		chat         int64
		reads, fixed bool
	}
	standing struct {
		until    time.Time
		wait     time.Duration
		since    int // the flood it rests on
		inferred bool
		restored bool // told by another process
		reads    bool
	}
	proof struct { // a call that came through
		call flood.Call
		sent int // floods there were when it was sent
	}
)

func (m *model) keys(c flood.Call) map[flood.Scope]modelKey {
	return map[flood.Scope]modelKey{
		flood.Chat:    {scope: flood.Chat, dc: c.DC, method: c.Method, chat: c.Chat},
		flood.Method:  {scope: flood.Method, dc: c.DC, method: c.Method},
		flood.Account: {scope: flood.Account, dc: c.DC, reads: c.Reads},
	}
}

func (m *model) stands(k modelKey) bool { return m.state[k].until.After(m.now) }

// provenSince: a call within k that was sent after the flood came through.
func (m *model) provenSince(k modelKey, flood int) bool {
	return slices.ContainsFunc(m.proofs, func(p proof) bool {
		return p.sent >= flood && m.keys(p.call)[k.scope] == k
	})
}

// returns: the account's flood was over a moment ago when a call that was sent since it came
// is the first of all to tell how that ended.
func (m *model) returns(k modelKey, sent int) bool {
	s := m.state[k]
	return k.scope == flood.Account && !s.restored && sent >= s.since &&
		m.now.Sub(s.until) < min(s.wait, 64*time.Second)
}

func (m *model) flooded(c flood.Call, sent int, wait time.Duration) {
	m.floods++
	ks := m.keys(c)
	until := m.now.Add(wait)
	note := func(k modelKey, s standing) {
		s.reads = c.Reads
		old := m.state[k]
		if m.stands(k) && !s.until.After(old.until) {
			s.until, s.since, s.restored = old.until, old.since, old.restored
			s.wait = old.wait
		} else {
			s.wait = s.until.Sub(m.now)
		}
		m.state[k] = s
	}
	reaches := until // also what this flood proves to be wider
	widen := func(wide modelKey, evidence func(modelKey, standing) bool) {
		if m.stands(wide) || m.returns(wide, sent) {
			note(wide, standing{until: reaches, since: m.floods, inferred: m.state[wide].inferred})
			return
		}
		found := standing{until: reaches, since: m.floods, inferred: true}
		for k, s := range m.state {
			if !k.fixed && !s.restored && m.stands(k) && k.dc == c.DC && evidence(k, s) && !m.provenSince(wide, s.since) {
				found.since = min(found.since, s.since)
				if s.until.After(found.until) {
					found.until = s.until
				}
			}
		}
		if found.since < m.floods {
			note(wide, found)
			reaches = found.until
		}
	}
	account := func() {
		widen(ks[flood.Account], func(k modelKey, s standing) bool {
			return k.scope == flood.Method && k.method != c.Method && s.reads == c.Reads
		})
	}
	if c.Chat == 0 {
		account()
		note(ks[flood.Method], standing{until: until, since: m.floods})
		return
	}
	widen(ks[flood.Method], func(k modelKey, _ standing) bool {
		return k.scope == flood.Chat && k.method == c.Method && k.chat != c.Chat
	})
	account()
	note(ks[flood.Chat], standing{until: until, since: m.floods})
}

func (m *model) slowMode(c flood.Call, wait time.Duration) {
	m.floods++
	k := modelKey{scope: flood.Chat, dc: c.DC, chat: c.Chat, fixed: true}
	if until := m.now.Add(wait); until.After(m.state[k].until) {
		m.state[k] = standing{until: until}
	}
}

func (m *model) passed(p proof) {
	m.proofs = append(m.proofs, p)
	for _, k := range m.keys(p.call) {
		if s := m.state[k]; s.inferred && p.sent >= s.since {
			delete(m.state, k)
		}
	}
}

func (m *model) restore(r flood.Record) {
	k := modelKey{scope: r.Scope, dc: r.DC, method: r.Method, chat: r.Chat, reads: r.Reads}
	sure := r.Scope != flood.Account && r.Why == ""
	if m.stands(k) && sure && r.Until.After(m.now) {
		s := m.state[k]
		s.inferred = false
		m.state[k] = s
	}
	old := m.state[k]
	if !r.Until.After(m.now) || m.stands(k) && !r.Until.After(old.until) {
		return
	}
	m.floods++
	if m.stands(k) && !old.restored && r.Until.Sub(old.until) < time.Second {
		old.until, old.wait = r.Until, r.Wait
		m.state[k] = old
		return
	}
	m.state[k] = standing{until: r.Until, since: m.floods, restored: true, inferred: !sure}
}

func (m *model) until(c flood.Call) (until time.Time) {
	ks := slices.Collect(maps.Values(m.keys(c)))
	if c.Method == "messages.sendMessage" || c.Method == "messages.sendMedia" {
		ks = append(ks, modelKey{scope: flood.Chat, dc: c.DC, chat: c.Chat, fixed: true})
	}
	for _, k := range ks {
		if m.stands(k) && m.state[k].until.After(until) {
			until = m.state[k].until
		}
	}
	return until
}

func (m *model) snapshot() []string {
	var out []string
	for k, s := range m.state {
		if m.stands(k) {
			if k.fixed {
				k.method = "slow"
			}
			out = append(out, fmt.Sprint(k.scope, k.dc, k.method, k.chat, k.reads, s.until.Sub(m.now)))
		}
	}
	slices.Sort(out)
	return out
}

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
		out = append(out, fmt.Sprint(r.Scope, r.DC, r.Method, r.Chat, r.Reads, r.Until.Sub(now)))
	}
	slices.Sort(out)
	return out
}

// The model follows the book, and what the book says of its changes is at any time
// enough to make another one that holds back the same.
func TestScopesAreInferredAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1e9, 0)
		hand := &handClock{now: start}
		b := flood.NewBook(flood.Options{Clock: hand, Journal: true})
		store := kept{}
		m := &model{now: start, state: map[modelKey]standing{}}

		type flight struct {
			pass flood.Pass
			sent int
		}
		var air []flight
		draw := func(t *rapid.T) flood.Call {
			c := flood.Call{
				DC:     rapid.IntRange(0, 1).Draw(t, "dc"),
				Method: rapid.SampledFrom([]string{"messages.sendMessage", "messages.sendMedia", "messages.editMessage", "messages.getHistory", "users.getUsers"}).Draw(t, "method"),
				Chat:   rapid.Int64Range(0, 3).Draw(t, "chat"),
			}
			c.Reads = c.Method == "messages.getHistory" || c.Method == "users.getUsers"
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
			return time.Duration(rapid.IntRange(1, 9).Draw(t, "seconds")) * time.Second
		}
		send := func(t *rapid.T) {
			c := draw(t)
			p, err := b.Enter(t.Context(), c, 0)
			until := m.until(c)
			if e, ok := errors.AsType[*flood.WaitError](err); ok != !until.IsZero() || ok && !e.Until.Equal(until) {
				t.Fatalf("%v: %v, want until %v", c, err, until)
			}
			if err == nil {
				air = append(air, flight{p, m.floods})
			}
		}
		fail := land(func(t *rapid.T, f flight) {
			d := wait(t)
			b.Flooded(f.pass, flood.Notice{Kind: flood.FloodWait, Wait: d})
			m.flooded(f.pass.Call(), f.sent, d)
		})
		t.Repeat(map[string]func(*rapid.T){
			"send": send, "send more": send, "send still more": send,
			"flood": fail, "flood again": fail,
			"slow mode": land(func(t *rapid.T, f flight) {
				if c := f.pass.Call(); c.Method == "messages.sendMessage" || c.Method == "messages.sendMedia" {
					d := wait(t)
					b.Flooded(f.pass, flood.Notice{Kind: flood.SlowMode, Wait: d})
					m.slowMode(c, d)
				}
			}),
			"pass": land(func(_ *rapid.T, f flight) {
				b.Passed(f.pass)
				m.passed(proof{f.pass.Call(), f.sent})
			}),
			"leave": land(func(_ *rapid.T, f flight) { b.Left(f.pass) }),
			"time": func(t *rapid.T) {
				hand.now = hand.now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
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
				case 3:
					rec.Scope, rec.Reads, rec.Why = flood.Account, c.Reads, "two methods"
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
				got, want := stands(b.Snapshot(), hand.now), m.snapshot()
				if !slices.Equal(got, want) {
					t.Fatalf("stands %q, want %q", got, want)
				}
				store.put(t, b.Changes()...)
				again := flood.NewBook(flood.Options{Clock: hand})
				again.Restore(store.all(t)...)
				if got := stands(again.Snapshot(), hand.now); !slices.Equal(got, want) {
					t.Fatalf("restored %q, want %q", got, want)
				}
			},
		})
	})
}

func TestAClockThatIsSetBackDoesNotLengthenAFlood(t *testing.T) {
	hand := &handClock{now: time.Unix(1e9, 0)}
	b := flood.NewBook(flood.Options{Clock: hand})
	flooded(t, b, send(1), "FLOOD_WAIT_10")
	hand.now = hand.now.Add(-time.Hour)
	if left := held(t, b, send(1)).Wait; left != 10*time.Second {
		t.Fatal(left)
	}
	hand.now = hand.now.Add(10 * time.Second)
	sent(t, b, send(1))
}
