package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// Gate is one gate: a bucket or a window, and the queue in front of it. It is a
// small value that can be compared and be the key of a map. Get one from
// [Limiter.NewGate] or [Gates.Key]; it belongs to that limiter for good. All methods
// are safe for concurrent use and do not block beyond the limiter's lock.
type Gate struct {
	set    *set
	key    uint64
	weight uint32 // 0 means 1
}

// Gates is a set of gates with one rule, one for each key: each chat, each user,
// each command. A gate takes memory from its first call until it has not been used for at
// most twice the time in which its bucket fills or its window passes. A full bucket takes
// some 40 bytes.
type Gates struct{ set *set }

// GateStats is what a gate looks like at one moment.
type GateStats struct {
	Name       string
	Limit      Limit         // of a window: Limit calls at once, and so many a second over a period
	Window     Window        // zero for a bucket
	Tokens     float64       // what could be taken now, whole tokens and a part; 0 while paused, or closed by a store
	Pending    int           // cost of the calls that [Limiter.Begin] admitted and that are not settled
	Waiters    int           // calls in the queue, of both lanes, but for one that asks a store
	OldestWait time.Duration // how long the first of them has waited
}

// Congestion is how busy the gate is, from 0 (idle) to 1 (saturated). A gate with a
// waiter is saturated. A paused one without is idle: nothing is wanted of it.
func (s GateStats) Congestion() float64 {
	switch {
	case s.Waiters > 0:
		return 1
	case s.Limit.Paused():
		return 0
	default:
		return 1 - s.Tokens/float64(s.Limit.Burst)
	}
}

// GatesStats is what a set of gates looks like at one moment.
type GatesStats struct {
	Name       string
	Live       int           // gates whose bucket is not full or whose window is not empty, or with pending calls
	Pending    int           // cost of the calls that are not settled, at all gates
	Waiters    int           // calls in all their queues
	OldestWait time.Duration // how long the first of those has waited
}

// NewGate adds a gate that nothing has passed yet. The name is for errors and
// statistics, and with [Options.Shared] other processes know the gate by it: then it has
// to be one that no other gate or set of this limiter has. An error about the rule is a
// [*LimitError].
func (l *Limiter) NewGate(name string, rule Rule) (Gate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.newSet(name, rule)
	if err != nil {
		return Gate{}, err
	}
	l.gates = append(l.gates, s)
	return Gate{set: s}, nil
}

// NewGates adds a set of gates, which are not counted by [Limiter.Congestion] and
// [Limiter.Stats]. Its errors are those of [Limiter.NewGate].
func (l *Limiter) NewGates(name string, rule Rule) (*Gates, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.newSet(name, rule)
	if err != nil {
		return nil, err
	}
	return l.addGates(s), nil
}

// Another adds a set of the same name with a rule of its own, for other keys: that some
// gates have another rule than the rest. With [Options.Shared] the gate of a key is one and
// the same in all sets of a name, and it has to be asked for in one of them at a time. Its
// error is that of the rule, a [*LimitError].
func (g *Gates) Another(rule Rule) (*Gates, error) {
	l := g.set.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := named(g.set.name, rule.Validate()); err != nil {
		return nil, err
	}
	return l.addGates(l.makeSet(g.set.name, rule)), nil
}

func (l *Limiter) addGates(s *set) *Gates {
	s.keyed = true
	s.busy = map[uint64]*line{}
	s.pending = map[uint64]int64{}
	l.sets = append(l.sets, s)
	return &Gates{set: s}
}

// Key returns the gate of a key. It costs nothing: the gate comes to life with its
// first call.
//
// While [DefaultMaxKeys] gates are in memory, new keys share 256 gates. So an attacker
// who invents keys can make other new keys wait, but memory does not grow, and a key gets
// at most twice its limit, once in each gate.
func (g *Gates) Key(key uint64) Gate { return Gate{set: g.set, key: key} }

// Set returns a Gate that stands for the whole set in [Limiter.Update].
func (g *Gates) Set() Gate { return Gate{set: g.set} }

// Rule returns the rule of the set as it is now. It does not block.
func (g *Gates) Rule() Rule {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	return g.set.rule
}

// SetMaxWaiters bounds the queue of each gate to most calls of a lane, 0 for no
// bound, for calls that come from now on: the next is refused with [ErrQueueFull].
func (g *Gates) SetMaxWaiters(most int) { g.Set().SetMaxWaiters(most) }

// SetMaxWaiters bounds the gate's queue to most calls of a lane, 0 for no bound, for
// calls that come from now on: the next is refused with [ErrQueueFull]. With
// [Options.Shared] a call that asks is in the queue as well.
func (g Gate) SetMaxWaiters(most int) {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	g.set.maxWaiters = max(0, most)
}

// MaxTimes is the most that [Gate.Times] takes a gate beyond what it holds. It bounds how
// large a debt is believed when a store reports one: a damaged number cannot close a gate
// for good. Telegram forwards at most 100 messages in a call.
const MaxTimes = 1000

// Times returns the gate with calls that count n times there, such as one that
// forwards n messages to a chat. A call that counts for more than the gate holds
// passes when the bucket is full or the window is empty, and is charged whole: the
// bucket goes into debt, and the next call waits until the debt is paid. n below 1
// is 1. A call is charged no more than the larger of [MaxTimes] and what the gate holds.
func (g Gate) Times(n int) Gate {
	g.weight = uint32(min(max(1, n), math.MaxInt32))
	return g
}

// price is what a call means to a gate, under its rule of the moment.
type price struct {
	need   int64 // how much room there has to be
	charge int64 // how much is taken; more than need if the gate does not hold so much
	queued int64 // how much the calls behind it have to wait for
	// pending is what counts until the call is settled. It does not depend on the rule, which
	// may change meanwhile: what is added has to be taken away again.
	pending int64
}

// price returns what a call of cost means to this gate.
func (g Gate) price(cost int64) price {
	if g.weight <= 1 {
		return price{need: cost, charge: cost, queued: cost, pending: cost}
	}
	s := g.set
	charge := max(cost, min(cost*int64(g.weight), s.most))
	p := price{need: max(cost, min(charge, s.capacity)), charge: charge}
	p.pending = max(cost, min(cost*int64(g.weight), math.MaxInt32))
	p.queued = p.need // all of a window's calls leave it together, however many
	if _, ok := s.algorithm.(bucket); ok {
		p.queued = charge
	}
	return p
}

// check refuses what is no list of gates to pass: a gate that nobody made, one of
// another limiter, and one that is named twice, where a call would wait behind itself.
func (l *Limiter) check(cost int, gates []Gate) error {
	if cost < 1 || cost > math.MaxInt32 {
		return fmt.Errorf("cost is %d: want a whole number from 1 to %d", cost, math.MaxInt32)
	}
	for i, g := range gates {
		if g.set == nil || g.set.limiter != l {
			return fmt.Errorf("gates[%d] is none of this limiter's: want one that NewGate or NewGates made", i)
		}
		for _, other := range gates[:i] {
			if g.same(other) {
				return fmt.Errorf("gates[%d] is %s once more: want each gate once, and Times for what counts more", i, g.set.name)
			}
		}
	}
	return nil
}

// same reports whether both are one gate, whatever a call counts there.
func (g Gate) same(other Gate) bool { return g.set == other.set && g.key == other.key }

// Name returns the name that the gate, or its set, was made with.
func (g Gate) Name() string { return g.set.name }

// Others returns how many tokens other processes have taken of the gate, or of its set,
// as far as this one has seen: whenever it asks [Options.Shared], it sees what they took
// since it last did. It is a measure, off by the time that asking takes, and 0 for
// windows.
func (g Gate) Others() float64 {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	return g.set.others
}

// Stats returns the gate's state.
func (g Gate) Stats() GateStats {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	now := g.set.limiter.nowLocked()
	st, l := g.set.peek(g.key)
	if l == nil {
		l = &line{set: g.set, state: st}
	}
	return l.stats(now)
}

func (l *line) stats(now int64) GateStats {
	s := GateStats{
		Name:       l.set.name,
		Pending:    int(l.state.pending),
		Waiters:    l.waiters(),
		OldestWait: l.oldest(now),
	}
	switch rule := l.set.rule.(type) {
	case Limit:
		s.Limit = rule
	case Window:
		s.Window = rule
		s.Limit = Limit{Rate: float64(rule.Limit) / rule.Period.Seconds(), Burst: rule.Limit}
	}
	if !l.set.paused && l.closedUntil <= now {
		s.Tokens = l.set.algorithm.tokens(l.state, now)
	}
	return s
}

// waiters does not count the call that asks the store, for which this process has room.
func (l *line) waiters() int {
	n := l.lanes[normal].len + l.lanes[background].len
	if l.asking != nil {
		n--
	}
	return n
}

func (l *line) oldest(now int64) (wait time.Duration) {
	if l.waiters() == 0 {
		return 0
	}
	for _, q := range l.lanes {
		if q.head != nil {
			wait = max(wait, time.Duration(now-q.head.waiter.since))
		}
	}
	return wait
}

// Stats returns the state of the set. It looks at each gate in memory, which takes some
// 20 ms for a million of them.
func (g *Gates) Stats() GatesStats {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	now := g.set.limiter.nowLocked()
	s := GatesStats{Name: g.set.name, Live: len(g.set.busy) + g.set.memory.live(g.set.algorithm, now)}
	for key, pending := range g.set.pending {
		s.Pending += int(pending)
		if g.set.algorithm.until(g.set.state(key)) <= now {
			s.Live++
		}
	}
	for _, l := range g.set.busy {
		s.Pending += int(l.state.pending)
		s.Waiters += l.waiters()
		s.OldestWait = max(s.OldestWait, l.oldest(now))
	}
	return s
}
