package floods_test

import (
	"math"
	"slices"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
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
		calls  int                   // let go so far; names them
		state  map[modelKey]standing // also those over
		proofs []proof
	}
	modelKey struct {
		scope        flood.Scope
		dc           int
		method       string
		chat         int64
		reads, fixed bool
		guess        bool // not told by the server
	}
	standing struct {
		until    time.Time
		wait     time.Duration
		since    int  // the flood it rests on
		restored bool // told by another process
		reads    bool
		repeats  int
		hits     int
		longest  time.Time // of those that led to it

		first     int       // the call that goes first, 0: none
		turn      time.Time // until when the others wait for it
		nextProbe time.Time // of a guess
		probed    int
	}
	proof struct { // a call that came through
		call floods.Call
		sent int // floods there were when it was sent
	}
	flight struct {
		pass floods.Pass
		id   int
		sent int
	}
)

func chatKey(c floods.Call) modelKey {
	return modelKey{scope: flood.Chat, dc: c.DC, method: c.Method, chat: c.Chat}
}
func methodKey(c floods.Call, guess bool) modelKey {
	return modelKey{scope: flood.Method, dc: c.DC, method: c.Method, guess: guess}
}
func accountKey(c floods.Call) modelKey {
	return modelKey{scope: flood.Account, dc: c.DC, reads: c.Reads, guess: true}
}
func slowKey(c floods.Call) modelKey {
	return modelKey{scope: flood.Chat, dc: c.DC, chat: c.Chat, fixed: true}
}

// covering are the keys of what holds the call back when it stands.
func covering(c floods.Call) []modelKey {
	ks := []modelKey{chatKey(c), methodKey(c, false)}
	if c.Method == "messages.sendMessage" || c.Method == "messages.sendMedia" {
		ks = append(ks, slowKey(c))
	}
	if c.Method == "updates.getChannelDifference" {
		return ks // no guess silences updates
	}
	return append(ks, methodKey(c, true), accountKey(c))
}

// ahead: the deadline is to come.
func (m *model) ahead(k modelKey) bool { return m.state[k].until.After(m.now) }

// awaited: the deadline is over, but of the call that goes first nothing was heard.
func (m *model) awaited(k modelKey) bool {
	s := m.state[k]
	return s.first != 0 && m.now.Sub(s.turn) < time.Minute
}

func (m *model) stands(k modelKey) bool { return m.ahead(k) || m.awaited(k) }

// lingers: the account's flood was over a moment ago.
func (m *model) lingers(k modelKey) bool {
	s := m.state[k]
	return k.scope == flood.Account && !s.restored && m.now.Sub(s.until) < min(s.wait, 64*time.Second)
}

// provenSince: a call within k that was sent after the flood came through.
func (m *model) provenSince(k modelKey, flood int) bool {
	return slices.ContainsFunc(m.proofs, func(p proof) bool {
		return p.sent >= flood && (k == methodKey(p.call, true) || k == accountKey(p.call))
	})
}

// agree: half of the longer at least, or two seconds.
func agree(a, b time.Duration) bool {
	return 2*min(a, b) >= max(a, b) || (a-b).Abs() <= 2*time.Second
}

// probeAfter is 5 s, 20 s, 80 s, 320 s, 10 min, 10 min …
func probeAfter(probed int) time.Duration {
	return min(10*time.Minute, time.Duration(5*math.Pow(4, float64(probed)))*time.Second)
}

// reached is where a flood belongs, and until when at most.
type reached struct {
	key    modelKey
	most   time.Time // zero: the flood's own
	since  int       // when it proves a scope: the earlier of the floods that do
	proves bool
	hits   int // of the floods that prove it
	last   time.Time
}

func (m *model) widened(c floods.Call, sent int, wait time.Duration, k modelKey, evidence func(modelKey, standing) bool) (r reached, ok bool) {
	r.key = k
	old := m.state[k]
	left := old.until.Sub(m.now)
	switch {
	case wait <= left: // nothing new
		r.most = old.until
		return r, true
	case left > 0 && agree(left, wait): // one more that was on the wire
		r.most = old.until
		for e, s := range m.state {
			if m.isEvidence(c, wait, k, e, s) && evidence(e, s) && s.until.After(r.most) {
				r.most = s.until
			}
		}
		r.most = r.most.Add(2 * time.Second)
		return r, true
	case left <= 0 && (m.awaited(k) || m.lingers(k) && sent >= old.since) &&
		(agree(old.wait, wait) || old.longest.After(m.now) && agree(old.longest.Sub(m.now), wait)): // it goes on
		return r, true
	}
	for e, s := range m.state {
		if !m.isEvidence(c, wait, k, e, s) || !evidence(e, s) {
			continue
		}
		r.hits += s.hits
		if s.until.After(r.last) {
			r.last = s.until
		}
		until := s.until
		if until.Sub(m.now) <= 2*time.Second {
			until = until.Add(2 * time.Second)
		}
		if !r.proves || until.Before(r.most) {
			r.most = until
		}
		if !r.proves || s.since < r.since {
			r.since = s.since
		}
		r.proves = true
	}
	return r, r.proves
}

// isEvidence: the flood e stands, was met here, agrees, and nothing in k came through since.
func (m *model) isEvidence(c floods.Call, wait time.Duration, k, e modelKey, s standing) bool {
	return !e.fixed && !s.restored && m.ahead(e) && e.dc == c.DC && agree(s.until.Sub(m.now), wait) && !m.provenSince(k, s.since)
}

func (m *model) reach(c floods.Call, sent int, wait time.Duration) (all []reached) {
	if c.Chat == 0 {
		all = append(all, reached{key: methodKey(c, false)})
	} else {
		all = append(all, reached{key: chatKey(c)})
		if k := methodKey(c, false); m.ahead(k) && agree(m.state[k].until.Sub(m.now), wait) {
			all = append(all, reached{key: k, most: m.state[k].until})
		}
		if r, ok := m.widened(c, sent, wait, methodKey(c, true), func(k modelKey, _ standing) bool {
			return k.scope == flood.Chat && k.method == c.Method && k.chat != c.Chat
		}); ok {
			all = append(all, r)
		}
	}
	if r, ok := m.widened(c, sent, wait, accountKey(c), func(k modelKey, s standing) bool {
		return k.scope == flood.Method && k.method != c.Method && s.reads == c.Reads
	}); ok {
		if narrower := all[len(all)-1]; r.proves && narrower.proves && narrower.most.Before(r.most) {
			r.most = narrower.most
		}
		all = append(all, r)
	}
	return all
}

func (m *model) flooded(f flight, wait time.Duration) {
	m.floods++
	c := f.pass.Call
	all := m.reach(c, f.sent, wait)
	repeats := 0
	for _, r := range all {
		if s := m.state[r.key]; m.stands(r.key) || m.lingers(r.key) {
			if s.first == f.id && !m.ahead(r.key) && (!r.key.guess || !s.longest.After(s.until)) {
				s.repeats++
			}
			repeats = max(repeats, s.repeats)
		}
	}
	hold := wait
	if repeats > 0 {
		hold += min(wait, time.Second<<(repeats-1))
	}
	for k, s := range m.state {
		if s.first == f.id { // it has looked
			s.probed++
			s.nextProbe = m.now.Add(probeAfter(s.probed))
			m.state[k] = s
		}
	}
	for _, r := range all {
		s := m.state[r.key]
		fresh := !m.ahead(r.key) || r.proves
		if fresh {
			s.first = 0
			if r.proves {
				s.probed = 0
			}
			if !m.stands(r.key) && !m.lingers(r.key) {
				s.hits = 0
			}
			s.nextProbe = m.now.Add(probeAfter(s.probed))
		}
		until := m.now.Add(hold)
		for _, led := range []time.Time{until, r.last} {
			if led.After(s.longest) && !r.most.Equal(s.until) {
				s.longest = led
			}
		}
		if !r.most.IsZero() && r.most.Before(until) {
			until = r.most
		}
		if until.After(s.until) {
			s.until, s.wait, s.restored, s.reads = until, until.Sub(m.now), false, c.Reads
			switch {
			case r.proves:
				s.since = r.since
			case fresh || !r.key.guess:
				s.since = m.floods
			}
		}
		if r.proves {
			s.hits = r.hits
		}
		s.hits++
		s.repeats = repeats
		m.state[r.key] = s
	}
	m.left(f)
}

// left: the call has gone first, if it has, and does no more.
func (m *model) left(f flight) {
	for k, s := range m.state {
		if s.first == f.id {
			s.first = 0
			m.state[k] = s
		}
	}
}

func (m *model) slowMode(f flight, wait time.Duration) {
	m.floods++
	k := slowKey(f.pass.Call)
	if until := m.now.Add(wait); until.After(m.state[k].until) {
		m.state[k] = standing{until: until}
	}
	for k, s := range m.state {
		if s.first == f.id {
			s.probed++
			s.nextProbe = m.now.Add(probeAfter(s.probed))
			m.state[k] = s
		}
	}
	m.left(f)
}

func (m *model) passed(f flight) {
	c := f.pass.Call
	m.proofs = append(m.proofs, proof{c, f.sent})
	for _, k := range []modelKey{methodKey(c, true), accountKey(c)} {
		if f.sent >= m.state[k].since {
			delete(m.state, k)
		}
	}
	m.left(f)
}

func (m *model) restore(r flood.Record) {
	k := modelKey{scope: r.Scope, dc: r.DC, method: r.Method, chat: r.Chat, reads: r.Reads, guess: r.Inferred}
	old := m.state[k]
	known := m.stands(k) || m.lingers(k)
	if !r.Until.After(m.now) || known && !r.Until.After(old.until) {
		return
	}
	m.floods++
	if !known {
		old = standing{}
	}
	if !old.until.After(m.now) || !k.guess {
		old.first, old.nextProbe = 0, m.now.Add(probeAfter(old.probed))
	}
	if !known || old.restored || r.Until.Sub(old.until) >= time.Second {
		old.since, old.restored, old.reads = m.floods, true, r.Reads
	}
	old.until, old.wait, old.hits = r.Until, r.Wait, max(old.hits, r.Hits)
	m.state[k] = old
}
