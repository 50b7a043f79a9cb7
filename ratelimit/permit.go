package ratelimit

import "sync/atomic"

// Permit is the right to make one call that is paid for already. Whoever holds it
// either uses it, once, or returns it. It is safe for concurrent use.
type Permit struct {
	limiter *Limiter
	cost    int
	gates   []Gate
	spent   atomic.Bool
}

// TryAcquire takes cost tokens from each of the gates if they all have room and
// nobody waits at them. Otherwise it takes nothing and returns the error of
// [Limiter.Try]. It does not block.
func (l *Limiter) TryAcquire(cost int, gates ...Gate) (*Permit, error) {
	if err := l.Try(cost, gates...); err != nil {
		return nil, err
	}
	return &Permit{limiter: l, cost: cost, gates: append([]Gate(nil), gates...)}, nil
}

// Cost returns the tokens that the permit has paid at each of its gates.
func (p *Permit) Cost() int { return p.cost }

// Pays reports whether the permit has paid at g.
func (p *Permit) Pays(g Gate) bool {
	for _, paid := range p.gates {
		if paid.same(g) {
			return true
		}
	}
	return false
}

// Use spends the permit. It reports false if it was used or returned before, and
// then it pays for nothing.
func (p *Permit) Use() bool { return p.spent.CompareAndSwap(false, true) }

// Return gives the tokens of an unused permit back. After Use, or a second time,
// it does nothing, so it can be deferred right where the permit was taken.
func (p *Permit) Return() {
	if p.Use() {
		p.limiter.Refund(p.cost, p.gates...)
	}
}
