package ratelimit

import "context"

// Begin is Acquire for a call to a server that counts calls by the same rules. The server
// counts the call at some moment between its start and its answer, and only that the answer
// has come shows that this moment has passed. So the tokens are pending until
// [Limiter.Settle]: a pending call takes its cost of a bucket's burst, or of a window's limit,
// but the bucket does not refill it and it does not leave the window. Whatever the delays of
// the network, a server of the same rule then refuses no call.
//
// After a nil error the caller owes one Settle, with the same cost and gates, or one
// [Limiter.Cancel] if the call is not sent. A call that is never settled takes its tokens for
// good.
//
// A call that waits for pending calls waits until they are settled, however long that is. The
// Wait of a [*RefusedError] is then the least that it can be.
//
// With [Options.Shared] nothing is pending: Begin is Acquire, and Settle does nothing.
func (l *Limiter) Begin(ctx context.Context, cost int, gates ...Gate) error {
	return l.acquire(ctx, normal, true, cost, gates)
}

// BeginBackground is Begin in the lane of [Limiter.AcquireBackground].
func (l *Limiter) BeginBackground(ctx context.Context, cost int, gates ...Gate) error {
	return l.acquire(ctx, background, true, cost, gates)
}

// TryBegin is Begin for a call that does not want to wait. It blocks and fails like
// [Limiter.Try].
func (l *Limiter) TryBegin(cost int, gates ...Gate) error {
	if err := l.check(cost, gates); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.tryLocked(true, int64(cost), gates)
	return err
}

// Settle says that a call of Begin was answered, or that the server can no longer count it
// for another reason: its tokens count from now on as those of Acquire do. cost and gates
// are those of Begin. Settle does not block. Where nothing is pending it does nothing.
func (l *Limiter) Settle(cost int, gates ...Gate) {
	if l.shared != nil || l.check(cost, gates) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	for _, g := range gates {
		g.set.settle(g.key, g.price(int64(cost)), now)
	}
}

// Cancel gives back the tokens of a call of Begin that is not sent. cost and gates are those
// of Begin. It does not block, except with [Options.Shared], where it is [Limiter.Refund].
func (l *Limiter) Cancel(cost int, gates ...Gate) {
	if l.shared != nil {
		l.Refund(cost, gates...)
		return
	}
	if l.check(cost, gates) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	for _, g := range gates {
		g.set.cancel(g.key, g.price(int64(cost)), now)
	}
}

// SetChargeAtBegin makes Begin charge calls at this gate, or at all gates of its set, at once,
// as Acquire does: nothing is pending there. It is for a limit that is itself a guess, and
// for a burst that is less than the rate times the round trip: while tokens are pending, such
// a bucket cannot reach its rate. The server may then refuse a call that the network has
// delayed. It does not block.
func (g Gate) SetChargeAtBegin(on bool) {
	g.set.limiter.mu.Lock()
	defer g.set.limiter.mu.Unlock()
	g.set.atBegin = on
}

// begin makes a call pending at a gate that is ready.
func (s *set) begin(key uint64, p price, now int64) {
	if s.atBegin {
		s.take(key, p.charge, now)
		return
	}
	cost := p.pending
	if !s.keyed {
		s.single.state.pending += cost
		return
	}
	s.pending[s.resolve(key)] += cost
}

// settle charges a pending call, and does nothing about one that was charged when it began.
func (s *set) settle(key uint64, p price, now int64) {
	l, key := s.owing(key)
	if l == nil {
		if st := s.state(key); st.pending > 0 {
			st.pending = max(0, st.pending-p.pending)
			s.remember(key, s.algorithm.take(st, p.charge, now, now), now)
		}
		return
	}
	if l.state.pending == 0 {
		return
	}
	waits := l.headBlocked()
	l.state.pending = max(0, l.state.pending-p.pending)
	l.state = s.algorithm.take(l.state, p.charge, now, now)
	if waits && !l.headBlocked() {
		l.wakeHead(now) // it can tell now when there is room
	}
}

// cancel forgets a pending call, or gives back what it was charged when it began.
func (s *set) cancel(key uint64, p price, now int64) {
	l, owing := s.owing(key)
	switch {
	case l == nil && s.pending[owing] > 0:
		s.setPending(owing, max(0, s.pending[owing]-p.pending))
	case l != nil && l.state.pending > 0:
		l.state.pending = max(0, l.state.pending-p.pending)
		l.passOn(now)
	case s.atBegin:
		s.giveBack(key, p.charge, justTaken, now)
	}
}

// owing finds the gate at which calls of a key are pending: its line, or the key under which
// it is remembered if it has none. If keys have been forgotten since such a call began, that
// may be the gate of strangers.
func (s *set) owing(key uint64) (*line, uint64) {
	if !s.keyed {
		return &s.single, key
	}
	for _, k := range [...]uint64{key, stranger(key)} {
		if l := s.busy[k]; l != nil && l.state.pending > 0 {
			return l, k
		}
		if s.pending[k] > 0 {
			return nil, k
		}
	}
	return nil, key
}

func (s *set) setPending(key uint64, cost int64) {
	switch {
	case cost > 0:
		s.pending[key] = cost
	case len(s.pending) > 0:
		delete(s.pending, key)
	}
}

// blocked reports whether there is no room for cost before a pending call is settled. Until
// then nobody knows when there will be.
func (l *line) blocked(cost int64) bool {
	return l.state.pending > 0 && l.state.pending+cost > l.set.capacity
}

func (l *line) headBlocked() bool {
	head := l.head()
	return head != nil && l.blocked(head.price().need)
}
