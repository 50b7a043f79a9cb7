package ratelimit

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/gotd/td/clock"
)

// set is the gates of one name, which share a rule: a single one, or one for each
// key. All of it is guarded by the limiter's lock.
//
// A gate of a keyed set is a word or two in a map while nobody waits at it, and
// nothing at all when it is as good as new. The maps are two generations: a state
// moves to the young one when it is touched; after a horizon the young becomes old,
// and what is old by then is dropped whole, since a state that was not touched for a
// horizon is as good as new. So forgetting changes no answer, and costs no search.
type set struct {
	name       string
	limiter    *Limiter
	rule       Rule
	algorithm  algorithm
	paused     bool
	capacity   int64
	maxWaiters int

	keyed      bool
	single     line             // not keyed
	busy       map[uint64]*line // keyed: gates with waiters
	young, old map[uint64]state // keyed: gates without
	turned     int64            // when young began
	fresh      state            // of a gate that is not remembered: full under the last rule
	maxKeys    int
	spare      []*line
	scratch    state // keyed: what is looked at; a local state would escape to the heap
}

// line is a gate that can have waiters.
type line struct {
	set    *set
	key    uint64
	state  state
	lanes  [2]queue
	passed int         // normal calls since a background one, while one waits
	timer  clock.Timer // the only one of the gate, set for the head
	armed  int64       // when it fires, or has fired
	news   int64       // when the head last got a reason to look, but for the passing of time

	late   int64 // how late the last call was admitted that had waited
	lateAt int64 // when that was
}

// DefaultMaxKeys is the bound on the keys of a set that are remembered apart.
const DefaultMaxKeys = 1 << 20

// shared is how many gates serve the keys beyond the bound.
const shared = 256

func (l *Limiter) newSet(name string, rule Rule) (*set, error) {
	if err := named(name, rule.Validate()); err != nil {
		return nil, err
	}
	s := &set{name: name, limiter: l, maxKeys: DefaultMaxKeys}
	s.single.set = s
	s.setRule(rule)
	return s, nil
}

func (s *set) setRule(rule Rule) {
	s.rule, s.algorithm, s.paused = rule, rule.algorithm(s.limiter), rule.Paused()
	s.capacity = s.algorithm.capacity()
}

// change makes next the rule, for every gate of the set.
func (s *set) change(next Rule, how Inheritance, now int64) {
	before := s.algorithm
	s.setRule(next)
	inherit := func(l *line) {
		s.algorithm.inherit(before, &l.state, how, now)
		l.news = now
		l.wakeHead()
	}
	inherit(&s.single)
	s.algorithm.inherit(before, &s.fresh, how, now)
	for _, l := range s.busy {
		inherit(l)
	}
	for _, m := range []map[uint64]state{s.young, s.old} {
		for key, st := range m {
			s.algorithm.inherit(before, &st, how, now)
			m[key] = st
		}
	}
	s.turned = now // nothing is forgotten sooner than the new rule allows
}

// resolve returns the key under which a gate is remembered. A stranger beyond the
// bound shares a gate with others: memory stays bounded, and nobody gets more than
// the limit.
func (s *set) resolve(key uint64) uint64 {
	if len(s.young)+len(s.old)+len(s.busy) < s.maxKeys {
		return key
	}
	if _, ok := s.busy[key]; ok {
		return key
	}
	if _, ok := s.find(key); ok {
		return key
	}
	return math.MaxUint64 - key%shared
}

// find returns what is remembered of a gate, and fresh if that is nothing.
func (s *set) find(key uint64) (state, bool) {
	st, ok := s.young[key]
	if !ok {
		if st, ok = s.old[key]; !ok {
			st = s.fresh
		}
	}
	return st, ok
}

// ready reports whether a call that does not queue passes: there is room, and
// nobody waits.
func (s *set) ready(key uint64, cost, now int64) bool {
	if s.paused || cost > s.capacity {
		return false
	}
	if !s.keyed {
		return s.single.empty() && s.algorithm.due(&s.single.state, cost, now) <= now
	}
	if len(s.busy) > 0 && s.busy[s.resolve(key)] != nil {
		return false
	}
	s.scratch, _ = s.find(s.resolve(key))
	return s.algorithm.due(&s.scratch, cost, now) <= now
}

// take charges a gate that is ready.
func (s *set) take(key uint64, cost, now int64) {
	if !s.keyed {
		s.algorithm.take(&s.single.state, cost, s.single.since(now), now)
		return
	}
	key = s.resolve(key)
	s.scratch, _ = s.find(key)
	s.algorithm.take(&s.scratch, cost, now, now)
	s.keep(key, s.scratch, now)
}

// since is when a call that does not queue is charged. Calls in sequence are late by what
// the one before them was: if a timer overslept by more than a token's time, the bucket
// has spilled over before the next call could come.
func (l *line) since(now int64) int64 {
	if now-l.lateAt > lateness {
		return now
	}
	return now - l.late
}

// giveBack undoes a take.
func (s *set) giveBack(key uint64, cost, taken, now int64) {
	if !s.keyed {
		s.algorithm.giveBack(&s.single.state, cost, taken, now)
		s.single.promote(now)
		return
	}
	key = s.resolve(key)
	if l := s.busy[key]; l != nil {
		s.algorithm.giveBack(&l.state, cost, taken, now)
		l.promote(now)
		return
	}
	if st, ok := s.find(key); ok {
		s.algorithm.giveBack(&st, cost, taken, now)
		s.keep(key, st, now)
	}
}

// keep remembers a state as touched now.
func (s *set) keep(key uint64, st state, now int64) {
	s.turn(now)
	n := len(s.young)
	s.young[key] = st
	if len(s.young) > n { // else it was young already, and is not among the old
		delete(s.old, key)
	}
}

// turn forgets what is as good as new.
func (s *set) turn(now int64) {
	horizon := s.algorithm.horizon()
	if now-s.turned < horizon {
		return
	}
	s.old, s.young = s.young, map[uint64]state{}
	if now-s.turned >= 2*horizon { // nothing was touched for longer than a generation
		clear(s.old)
	}
	s.turned = now
}

// line returns the line of a gate that somebody is about to wait at.
func (s *set) line(key uint64) *line {
	if !s.keyed {
		return &s.single
	}
	key = s.resolve(key)
	if l := s.busy[key]; l != nil {
		return l
	}
	var l *line
	if n := len(s.spare); n > 0 {
		l, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		l = &line{set: s}
	}
	l.key = key
	l.state, _ = s.find(key)
	delete(s.young, key)
	delete(s.old, key)
	s.busy[key] = l
	return l
}

// release puts a line away that nobody waits in any more.
func (s *set) release(l *line) {
	if !s.keyed || !l.empty() {
		return
	}
	delete(s.busy, l.key)
	s.keep(l.key, l.state, s.limiter.last)
	l.state, l.news, l.passed = state{}, 0, 0
	if len(s.spare) < maxFree {
		s.spare = append(s.spare, l)
	}
}

func (l *line) empty() bool { return l.lanes[normal].len == 0 && l.lanes[background].len == 0 }

// wakeHead makes the head reckon again.
func (l *line) wakeHead() {
	if head := l.head(); head != nil {
		head.waiter.wake()
	}
}

// promote tells the head that it is the one, or that it has got tokens, since at. It is
// woken if it can go on, or has something to decide; else the timer is set for it.
func (l *line) promote(at int64) {
	l.news = at
	head := l.head()
	if head == nil {
		return
	}
	w, cost, now := head.waiter, head.cost(), l.set.limiter.last
	switch {
	case w.listens != l, w.hurried, cost > l.set.capacity, l.ready(cost, now):
		w.wake()
	case !l.set.paused:
		l.arm(l.due(cost, now), now)
	}
}

// ready reports whether there is room for the head.
func (l *line) ready(cost, now int64) bool {
	return !l.set.paused && cost <= l.set.capacity && l.due(cost, now) <= now
}

func (l *line) due(cost, now int64) int64 { return l.set.algorithm.due(&l.state, cost, now) }

// refusal is what there is to say to a call of cost with ahead before it.
func (s *set) refusal(st *state, ahead, cost, now int64) RefusedError {
	refused := RefusedError{Reason: ErrRejected, Gate: s.name, Limit: s.rule, Cost: int(cost)}
	switch {
	case s.paused: // nobody knows
	case cost > s.capacity:
		refused.Reason = ErrImpossible
	default:
		// Behind a queue there is a wait, even where the tokens are there already.
		refused.Wait = max(1, time.Duration(s.algorithm.due(st, ahead+cost, now)-now))
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
	st, _ := s.find(key)
	return st, nil
}

// ahead is what waits before a newcomer of the lane: its cost here, and where calls
// count once.
func (l *line) ahead(of lane) (cost, calls int64) {
	for _, q := range l.lanes[:of+1] {
		cost, calls = cost+q.cost, calls+q.calls
	}
	return cost, calls
}

// Key makes a key of a text, such as a user's name, for [Gates.Key]. Texts are told
// apart by a hash that is seeded anew for each limiter, so that nobody can aim at
// another's gate, and a long text costs no memory.
func (l *Limiter) Key(text string) uint64 { return maphash.String(l.seed, text) }
