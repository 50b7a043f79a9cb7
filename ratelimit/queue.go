package ratelimit

// waiter is one call that has to wait: a place in the queue of each gate that it
// has come to. Its goroutine does all the work; the others only wake it.
type waiter struct {
	cost   int64
	since  int64         // when it came
	places []place       // one a gate, narrowest first
	woken  chan struct{} // holds one signal
}

// place is a waiter's link in the queue of one gate.
type place struct {
	waiter     *waiter
	gate       *Gate
	queued     bool
	prev, next *place
}

// wake never blocks: a signal that is already there says the same.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// queue is a list of places in the order of arrival. Leaving from the middle is
// as cheap as leaving from an end, since a cancelled call may stand anywhere.
type queue struct {
	head, tail *place
	len        int
	cost       int64 // sum of the costs of all waiters
}

func (q *queue) push(p *place) {
	p.prev, p.next, p.queued = q.tail, nil, true
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
	q.len++
	q.cost += p.waiter.cost
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
	p.prev, p.next, p.queued = nil, nil, false
	q.len--
	q.cost -= p.waiter.cost
}
