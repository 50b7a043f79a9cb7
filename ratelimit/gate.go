package ratelimit

import (
	"time"

	"github.com/gotd/td/clock"
)

// Gate is a token bucket and the queue in front of it. Make one with
// [Limiter.NewGate]; it belongs to that limiter for good. All methods are safe
// for concurrent use and do not block beyond the limiter's lock.
type Gate struct {
	name    string
	limiter *Limiter
	bucket  bucket // guarded by limiter.mu, like all below
	queue   queue
	timer   clock.Timer // the only one of this gate, used by the head of its queue
	news    int64       // when the head last got a reason to look, but for the passing of time
}

// GateStats is what a gate looks like at one moment.
type GateStats struct {
	Name       string
	Limit      Limit
	Tokens     float64       // what could be taken now, whole tokens and a part; 0 while paused
	Waiters    int           // calls in the queue
	OldestWait time.Duration // how long the first of them has waited
}

// Congestion is how full the gate is, from 0 (idle) to 1 (saturated). A gate with
// a waiter, or a paused one, is saturated.
func (s GateStats) Congestion() float64 {
	if s.Waiters > 0 || s.Limit.Paused() {
		return 1
	}
	return 1 - s.Tokens/float64(s.Limit.Burst)
}

// Name returns the name that the gate was made with.
func (g *Gate) Name() string { return g.name }

// Stats returns the gate's state.
func (g *Gate) Stats() GateStats {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	return g.statsLocked(g.limiter.nowLocked())
}

func (g *Gate) statsLocked(now int64) GateStats {
	s := GateStats{
		Name:    g.name,
		Limit:   g.bucket.limit,
		Tokens:  g.bucket.tokens(now),
		Waiters: g.queue.len,
	}
	if head := g.queue.head; head != nil {
		s.OldestWait = time.Duration(now - head.waiter.since)
	}
	return s
}

// refusalLocked is what there is to say to a call of cost with ahead before it.
func (g *Gate) refusalLocked(ahead, cost, now int64) RefusedError {
	refused := RefusedError{Reason: ErrRejected, Gate: g.name, Limit: g.bucket.limit, Cost: int(cost)}
	switch {
	case refused.Limit.Paused(): // nobody knows
	case cost > int64(refused.Limit.Burst):
		refused.Reason = ErrImpossible
	default:
		// Behind a queue there is a wait, even where the tokens are there already.
		refused.Wait = max(1, time.Duration(g.bucket.due(ahead+cost)-now))
	}
	return refused
}

// wakeHeadLocked makes the head of the queue reckon again, for a reason that
// exists since at.
func (g *Gate) wakeHeadLocked(at int64) {
	g.news = at
	if head := g.queue.head; head != nil {
		head.waiter.wake()
	}
}
