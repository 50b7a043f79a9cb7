package ratelimit

import "sync/atomic"

// Permit is the right to make one call that is paid for already. Its holder either uses
// it, once, or returns it. Its tokens are pending, as those of [Limiter.Begin] are. It is
// safe for concurrent use.
type Permit struct {
	limiter *Limiter
	cost    int
	taken   int64 // when
	gates   []Gate
	paid    []int64 // what at each of them
	by      payee
	spent   atomic.Bool
}

// payee is who has charged a call.
type payee uint8

const (
	nobody  payee = iota // it was not admitted, or in an outage of the store
	process              // this process alone
	account              // the store as well
)

// TryAcquire begins a call of cost at each of the gates if they all have room and
// nobody waits at them. Otherwise it takes nothing and returns the error of
// [Limiter.Try]. It blocks no longer than that does.
func (l *Limiter) TryAcquire(cost int, gates ...Gate) (*Permit, error) {
	if err := l.check(cost, gates); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	by, err := l.tryLocked(true, int64(cost), gates)
	if err != nil {
		return nil, err
	}
	p := &Permit{limiter: l, cost: cost, taken: l.last, by: by}
	for _, g := range gates {
		p.gates, p.paid = append(p.gates, g), append(p.paid, g.price(int64(cost)).charge)
	}
	return p, nil
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

// Use spends the permit for a call, which then owes a [Limiter.Settle] with the cost and the
// gates of the permit, or a [Limiter.Cancel]. It reports false if the permit was used or
// returned before, and then it pays for nothing.
func (p *Permit) Use() bool { return p.spent.CompareAndSwap(false, true) }

// Return gives the tokens of an unused permit back. After Use, or a second time, it does
// nothing, so it can be deferred right where the permit was taken. With [Options.Shared] it
// may take up to 100 ms, as [Limiter.Refund] may, and gives back only what the buckets have
// not refilled since: there, a permit that is held for long is spent by time.
func (p *Permit) Return() {
	if !p.Use() || p.by == nobody {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	now := p.limiter.nowLocked()
	if p.limiter.shared == nil {
		for _, g := range p.gates {
			g.set.cancel(g.key, g.price(int64(p.cost)), now)
		}
		return
	}
	if p.by == account {
		p.limiter.refundLocked(p.gates, func(i int) int64 { return p.paid[i] })
	}
	now = p.limiter.nowLocked()
	for i, g := range p.gates {
		g.set.giveBack(g.key, p.paid[i], p.taken, now)
	}
}
