package ratelimit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"github.com/gotd/td/clock"
)

// set is the gates of one name, which share a rule: a single one, or one for each
// key. All of it is guarded by the limiter's lock.
//
// A gate of a keyed set without waiters is an entry in memory. It is forgotten when it no
// longer differs from a gate that was never used. What is pending there is kept apart, until
// it is settled.
type set struct {
	name       string
	limiter    *Limiter
	rule       Rule
	algorithm  algorithm
	paused     bool
	capacity   int64
	most       int64  // that one call is charged
	changes    uint64 // of the rule, so far
	maxWaiters int
	atBegin    bool    // nothing is pending: calls are charged when they begin
	others     float64 // tokens that other processes were seen to take

	keyed   bool
	single  line             // not keyed
	busy    map[uint64]*line // keyed: gates with waiters
	memory  memory           // keyed: gates without
	pending map[uint64]int64 // keyed: what is pending at gates without waiters, where it is not 0
	fresh   state            // of a gate that is not remembered
}

// line is a gate that can have waiters.
type line struct {
	set    *set
	key    uint64
	state  state
	lanes  [2]queue
	passed int         // normal calls since a background one, while one waits
	timer  clock.Timer // the only one of the gate, used by the head
	asking *place      // who asks the store about it
	news   int64       // when the head last got a reason to look, but for the passing of time

	late   int64 // how late the last call was admitted that had waited
	lateAt int64 // when that was

	closedUntil int64 // the store has said so
}

// DefaultMaxKeys is the bound on the keys of a set that are remembered apart.
const DefaultMaxKeys = 1 << 20

// strangers is how many gates serve the keys beyond the bound.
const strangers = 256

func (l *Limiter) newSet(name string, rule Rule) (*set, error) {
	if err := named(name, rule.Validate()); err != nil {
		return nil, err
	}
	for _, others := range [...][]*set{l.gates, l.sets} {
		for _, s := range others {
			if l.shared != nil && s.name == name {
				return nil, fmt.Errorf("gate %s is there already: want a name of its own, by which processes know it", name)
			}
		}
	}
	return l.makeSet(name, rule), nil
}

func (l *Limiter) makeSet(name string, rule Rule) *set {
	s := &set{name: name, limiter: l}
	s.single.set = s
	s.setRule(rule)
	return s
}

func (s *set) setRule(rule Rule) {
	s.rule, s.algorithm, s.paused = rule, rule.algorithm(s.limiter), rule.Paused()
	s.capacity, s.most = s.algorithm.capacity(), s.algorithm.most()
}

// change makes next the rule, for every gate of the set.
func (s *set) change(next Rule, how Inheritance, now int64) {
	before := s.algorithm
	s.setRule(next)
	s.changes++
	inherit := func(st state) state { return s.algorithm.inherit(before, st, how, now) }
	change := func(l *line) {
		l.state = inherit(l.state)
		l.closedUntil = 0
		l.wakeHead(now)
	}
	change(&s.single)
	for _, l := range s.busy {
		change(l)
	}
	s.fresh = inherit(s.fresh)
	s.memory.change(inherit, s.algorithm.until)
}

// resolve returns the key under which a gate is remembered. A new key beyond the
// bound shares a gate with others, so that memory stays bounded.
func (s *set) resolve(key uint64) uint64 {
	if s.remembered() < DefaultMaxKeys {
		return key
	}
	for s.age(s.limiter.last) {
		// Both generations may go.
	}
	if s.remembered() < DefaultMaxKeys || s.busy[key] != nil || s.pending[key] > 0 {
		return key
	}
	if _, ok := s.memory.get(key); ok {
		return key
	}
	return stranger(key)
}

// stranger is the key of the gate that serves a key beyond the bound.
func stranger(key uint64) uint64 { return math.MaxUint64 - key%strangers }

// remembered is how many gates of a keyed set are in memory.
func (s *set) remembered() int { return s.memory.len() + len(s.busy) }

// age forgets the gates of the old generation if it can. A gate that is forgotten is fresh
// from then on, and while a fresh gate is not full, none can be.
func (s *set) age(now int64) bool {
	return s.algorithm.until(s.fresh) <= now && s.memory.age(now)
}

// state returns the state of a gate of a keyed set that nobody waits at.
func (s *set) state(key uint64) state {
	st, ok := s.memory.get(key)
	if !ok {
		st = s.fresh
	}
	if len(s.pending) > 0 {
		st.pending = s.pending[key]
	}
	return st
}

// remember keeps the state of a gate of a keyed set that nobody waits at.
func (s *set) remember(key uint64, st state, now int64) {
	s.setPending(key, st.pending)
	if s.memory.put(key, st, s.algorithm.until(st)) && s.memory.young.len() > minYoung {
		s.age(now)
	}
}

// ready reports whether a call that does not queue passes: there is room, and
// nobody waits.
func (s *set) ready(key uint64, cost, now int64) bool {
	if s.paused || cost > s.capacity {
		return false
	}
	if !s.keyed {
		return s.single.empty() && s.single.due(cost, now) <= now
	}
	key = s.resolve(key)
	if len(s.busy) > 0 && s.busy[key] != nil {
		return false
	}
	return s.algorithm.due(s.state(key), cost, now) <= now
}

// take charges a gate that is ready.
func (s *set) take(key uint64, cost, now int64) {
	if !s.keyed {
		s.single.state = s.algorithm.take(s.single.state, cost, s.single.since(now), now)
		return
	}
	key = s.resolve(key)
	s.remember(key, s.algorithm.take(s.state(key), cost, now, now), now)
}

// since is the time for which a call that does not queue is charged. In a sequence of calls,
// each is as late as the one before: if a timer overslept by more than a token's time, the
// bucket was full before the next call could come.
func (l *line) since(now int64) int64 {
	if now-l.lateAt > lateness {
		return now
	}
	return now - l.late
}

// giveBack undoes a take.
func (s *set) giveBack(key uint64, cost, taken, now int64) {
	l := &s.single
	if s.keyed {
		key = s.resolve(key)
		if l = s.busy[key]; l == nil {
			if _, ok := s.memory.get(key); ok {
				s.remember(key, s.algorithm.giveBack(s.state(key), cost, taken, now), now)
			}
			return
		}
	}
	l.state = s.algorithm.giveBack(l.state, cost, taken, now)
	l.passOn(now)
}

// line returns the line of a gate that a call is about to wait at.
func (s *set) line(key uint64) *line {
	if !s.keyed {
		return &s.single
	}
	key = s.resolve(key)
	l := s.busy[key]
	if l == nil {
		l = &line{set: s, key: key, state: s.state(key)}
		s.memory.remove(key)
		delete(s.pending, key)
		s.busy[key] = l
	}
	return l
}

// release remembers the state of a line that nobody waits in any more.
func (s *set) release(l *line, now int64) {
	if s.keyed && l.empty() {
		delete(s.busy, l.key)
		s.remember(l.key, l.state, now)
	}
}

func (l *line) empty() bool { return l.lanes[normal].len == 0 && l.lanes[background].len == 0 }

// wakeHead makes the head look again, for a reason that exists since at.
func (l *line) wakeHead(at int64) {
	l.news = at
	if head := l.head(); head != nil {
		head.waiter.wake()
	}
}

// passOn admits the head if a refund made room for it, or makes it look again.
func (l *line) passOn(now int64) {
	l.closedUntil = 0
	if head := l.head(); head != nil {
		l.news = now
		l.set.limiter.grantLocked(head.waiter, now)
		head.waiter.wake()
	}
}

// refuse is the refusal of a head.
func (l *line) refuse(p price, now int64) RefusedError {
	return l.set.refusal(l.state, l.closedUntil, 0, p, now)
}

// ready reports whether there is room for the head.
func (l *line) ready(cost, now int64) bool {
	return !l.set.paused && cost <= l.set.capacity && l.due(cost, now) <= now
}

func (l *line) due(cost, now int64) int64 {
	return max(l.set.algorithm.due(l.state, cost, now), l.closedUntil)
}

// refusal is the error for a call of a price with ahead before it, at a gate that is
// closed until some time.
func (s *set) refusal(st state, until, ahead int64, p price, now int64) RefusedError {
	refused := RefusedError{Reason: ErrRejected, Gate: s.name, Limit: s.rule, Cost: int(p.charge), Pending: int(st.pending)}
	switch {
	case s.paused: // nobody knows
	case p.need > s.capacity:
		refused.Reason = ErrImpossible
	default:
		// Behind a queue there is a wait, even where the tokens are there already.
		refused.Wait = max(1, time.Duration(max(until, s.algorithm.due(st, ahead+p.need, now))-now))
	}
	return refused
}

// peek returns the state of a gate, and its line if somebody waits there.
func (s *set) peek(key uint64) (state, *line) {
	if !s.keyed {
		return s.single.state, &s.single
	}
	key = s.resolve(key)
	if l := s.busy[key]; l != nil {
		return l.state, l
	}
	return s.state(key), nil
}

// ahead is what waits before a newcomer of the lane: its cost here, and where calls
// count once.
func (l *line) ahead(of lane) (cost, calls int64) {
	for _, q := range l.lanes[:of+1] {
		cost, calls = cost+q.cost, calls+q.calls
	}
	return cost, calls
}

// Key hashes a text, such as a user's name, to a key for [Gates.Key]. The hash has a
// random seed for each limiter, so that nobody can aim at the gate of another text.
//
// With [Options.Shared] all processes need the same key, so it is the first 8 bytes of the
// text's SHA-256, which anybody can compute.
func (l *Limiter) Key(text string) uint64 {
	if l.shared == nil {
		return maphash.String(l.seed, text)
	}
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}
