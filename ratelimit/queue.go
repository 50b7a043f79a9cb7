package ratelimit

import "context"

// lane is one of the two queues of a gate.
type lane uint8

const (
	normal lane = iota
	background
)

// backgroundTurn is how many normal calls pass a gate in a row while a background
// call waits there. The next is the background call, so that it is not starved.
const backgroundTurn = 9

// waiter is one call that has to wait. It has a place in the queue of each gate that it
// has reached. Its own goroutine does the work, woken by the others, with one exception: a
// goroutine that gives tokens back takes them for the waiter at once (grantLocked).
type waiter struct {
	ctx     context.Context
	cost    int64
	since   int64         // when it came
	at      int64         // granted: when the tokens could have been taken
	places  []place       // one a gate, narrowest first
	woken   chan struct{} // holds one signal
	called  bool          // a signal is pending
	granted bool          // the tokens are taken, it has only to leave
	pending bool          // its tokens are to be settled by [Limiter.Settle]
	lane    lane
	by      payee // granted: who has charged it, where there is a store
}

// place is a waiter's link in the queue of one gate.
type place struct {
	waiter     *waiter
	queued     int64 // what it has added to the queue's cost
	gate       Gate
	line       *line // nil while it has not come to the gate
	prev, next *place
}

// price is what the call means to the gate, under its rule of the moment.
func (p *place) price() price { return p.gate.price(p.waiter.cost) }

// wake never blocks: one pending signal is enough.
func (w *waiter) wake() {
	if !w.called {
		w.called = true
		w.woken <- struct{}{}
	}
}

// heard consumes the signal, if there is one.
func (w *waiter) heard(received bool) {
	if w.called && !received {
		<-w.woken
	}
	w.called = false
}

// queue is a list of places in the order of arrival. Leaving from the middle is
// as cheap as leaving from an end, since a cancelled call may stand anywhere.
type queue struct {
	head, tail *place
	len        int
	cost       int64 // sum of the costs of all waiters, here
	calls      int64 // and at gates where they count once
}

func (q *queue) push(p *place) {
	p.prev, p.next = q.tail, nil
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
	p.queued = p.price().queued
	q.len++
	q.cost += p.queued
	q.calls += p.waiter.cost
}

func (q *queue) remove(p *place) {
	if p.prev == nil {
		q.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		q.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
	q.len--
	q.cost -= p.queued
	q.calls -= p.waiter.cost
}

// head is the place whose turn it is, or nil. A normal call comes before background calls,
// except every tenth time. A call that asks the store stays the head.
func (l *line) head() *place {
	if l.asking != nil {
		return l.asking
	}
	first, second := l.lanes[normal].head, l.lanes[background].head
	if first == nil || second != nil && l.passed >= backgroundTurn {
		return second
	}
	return first
}

// join puts a place at the end of its lane. A background call that loses its turn to
// it lets go of what it holds further on.
func (l *line) join(p *place, now int64) {
	before := l.head()
	p.line = l
	l.lanes[p.waiter.lane].push(p)
	if before != nil && l.head() != before && !before.waiter.granted {
		before.retreat(now)
		before.waiter.wake()
	}
}

// leave gives up the place, if there is one, and wakes the new head. at is when the place
// became free.
func (p *place) leave(at int64, admitted bool) {
	l := p.line
	if l == nil {
		return
	}
	first := l.head() == p
	l.lanes[p.waiter.lane].remove(p)
	p.line = nil
	switch {
	case l.lanes[background].len == 0, admitted && p.waiter.lane == background:
		l.passed = 0
	case admitted:
		l.passed++
	}
	if first {
		l.wakeHead(at)
	}
	l.set.release(l, l.set.limiter.last)
}

// retreat leaves the gates beyond this one, or a narrow gate that is closed would
// close a wide one.
func (p *place) retreat(now int64) {
	w := p.waiter
	for i := len(w.places) - 1; &w.places[i] != p; i-- {
		w.places[i].leave(now, false)
	}
}
