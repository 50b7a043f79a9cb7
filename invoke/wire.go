package invoke

import (
	"sync"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/ratelimit"
)

// MaxUnanswered is how long the tokens of a call stay pending after it has ended without an
// answer, if nothing shows earlier that the server can no longer count it.
const MaxUnanswered = time.Minute

// A call left clearly before another if it left by a round trip and its usual variation
// earlier, and by no less than leastApart: between the limiter and the socket, two goroutines
// can overtake each other. Before the first answer a round trip counts as firstRoundTrip.
const (
	leastApart     = 100 * time.Millisecond
	firstRoundTrip = time.Second
)

// wire follows the calls of one connection, or of one pool, until the server must have counted
// them, and then settles each in the limiter, once:
//
//   - when it is answered;
//   - when a call is answered that left clearly later. A connection keeps its order, so the
//     earlier call has arrived too, however long the server works on it;
//   - when its connection is known to be gone, if the call has ended;
//   - MaxUnanswered after it has ended without an answer.
type wire struct {
	limiter *ratelimit.Limiter
	clock   clock.Clock
	closed  <-chan struct{}

	mu        sync.Mutex
	calls     []underway // in the order in which they left; the first may be settled
	done      int        // how many at the front of calls are settled
	number    uint64     // of calls[0]
	roundTrip roundTrip
	watched   bool // watch runs
}

// underway is a call that has left.
type underway struct {
	left    time.Time
	ended   time.Time // without an answer
	settled bool
	cost    int
	pass    pass
}

func newWire(l *ratelimit.Limiter, c clock.Clock, closed <-chan struct{}) *wire {
	return &wire{limiter: l, clock: c, closed: closed, number: 1}
}

// leave notes that a call leaves now. It returns the number of the call, 0 if it has no tokens
// to settle.
func (w *wire) leave(p *pass, cost int) (number uint64, now time.Time) {
	if p.n == 0 {
		return 0, w.clock.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done > len(w.calls)/2 { // then moving the rest costs less than the calls have
		n := copy(w.calls, w.calls[w.done:])
		w.calls, w.number, w.done = w.calls[:n], w.number+uint64(w.done), 0
	}
	now = w.clock.Now()
	w.calls = append(w.calls, underway{left: now, cost: cost, pass: *p})
	return w.number + uint64(len(w.calls)) - 1, now
}

// find returns the call of a number, nil if it is settled.
func (w *wire) find(number uint64) *underway {
	if number < w.number+uint64(w.done) {
		return nil
	}
	if u := &w.calls[number-w.number]; !u.settled {
		return u
	}
	return nil
}

// answered settles a call that the server has answered, and all that left clearly before it.
func (w *wire) answered(number uint64, left time.Time) {
	if number == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.find(number); u != nil {
		// The answer of a call that was settled before shows how slow its method is.
		w.roundTrip.measure(w.clock.Now().Sub(left))
		w.settle(u)
	}
	before := left.Add(-w.roundTrip.apart())
	for i := w.done; i < len(w.calls) && !w.calls[i].left.After(before); i++ {
		w.settle(&w.calls[i])
	}
	w.advance()
}

// unsent forgets a call whose tokens are given back.
func (w *wire) unsent(number uint64) {
	if number == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if u := w.find(number); u != nil {
		u.settled = true
		w.advance()
	}
}

// end notes that a call has ended without an answer, with err, nil for a panic.
func (w *wire) end(number uint64, err error) {
	if number == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.find(number)
	if u == nil {
		return
	}
	u.ended = w.clock.Now()
	if isLost(err) {
		w.settle(u)
		w.advance()
		return
	}
	if !w.watched {
		w.watched = true
		w.watch(MaxUnanswered)
	}
}

// gone settles the calls that have ended without an answer: their connection is gone. The
// others gotd sends again on the next one, or ends.
func (w *wire) gone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleEnded(w.clock.Now())
}

// watch settles the calls that ended without an answer MaxUnanswered ago, from next on and
// until there are none.
func (w *wire) watch(next time.Duration) {
	look := func() {
		if next := w.overdue(); next > 0 {
			w.watch(next)
		}
	}
	if w.clock == clock.System { // which needs no goroutine meanwhile
		time.AfterFunc(next, look)
		return
	}
	go func() {
		timer := w.clock.Timer(next)
		select {
		case <-timer.C():
			look()
		case <-w.closed:
			clock.StopTimer(timer)
		}
	}()
}

// overdue settles what is due, and returns the time until the next is, 0 if there is none.
func (w *wire) overdue() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	first := w.settleEnded(now.Add(-MaxUnanswered))
	if first.IsZero() {
		w.watched = false
		return 0
	}
	return first.Add(MaxUnanswered).Sub(now)
}

// settleEnded settles the calls that had ended without an answer by then, and returns when the
// first of the others ended.
func (w *wire) settleEnded(by time.Time) (first time.Time) {
	for i := w.done; i < len(w.calls); i++ {
		switch u := &w.calls[i]; {
		case u.settled || u.ended.IsZero():
		case !u.ended.After(by):
			w.settle(u)
		case first.IsZero() || u.ended.Before(first):
			first = u.ended
		}
	}
	w.advance()
	return first
}

func (w *wire) settle(u *underway) {
	if !u.settled {
		u.settled = true
		w.limiter.Settle(u.cost, u.pass.all()...)
	}
}

// advance passes by the calls at the front that are settled.
func (w *wire) advance() {
	for w.done < len(w.calls) && w.calls[w.done].settled {
		w.done++
	}
}

// roundTrip is the time from a call to its answer, estimated as TCP does (RFC 6298).
type roundTrip struct{ smooth, varies time.Duration }

func (r *roundTrip) measure(took time.Duration) {
	if r.smooth == 0 {
		r.smooth, r.varies = max(took, 1), took/2
		return
	}
	r.varies += ((r.smooth - took).Abs() - r.varies) / 4
	r.smooth += (took - r.smooth) / 8
}

// apart is by how much a call has to leave before another to arrive before it.
func (r *roundTrip) apart() time.Duration {
	if r.smooth == 0 {
		return firstRoundTrip
	}
	return max(leastApart, r.smooth+4*r.varies)
}
