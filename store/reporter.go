package store

import (
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// reportTime is how long [Reporter.Close] waits for the function that it calls.
const reportTime = 2 * time.Second

// Reporter tells a program when a store is lost and when it is back: it is lost as long as one
// of its users ([Health]) finds it so. Each change is told once and in order, by a goroutine
// that lives no longer than that takes: whoever met the change may hold locks, and the
// function that hears of it may call whatever it likes. Changes that undo each other while
// the function is busy are not told. A nil Reporter tells nobody.
type Reporter struct {
	clock clock.Clock
	f     func(error)

	mu      sync.Mutex
	users   []*Health
	told    bool          // f knows that the store is lost
	telling chan struct{} // closed when f knows how things stand; nil while it does
	closed  bool
}

// NewReporter returns a reporter that calls f with the error that the store was lost with, and
// with nil when it is back. A panic of f is contained. c is clock.System when nil.
func NewReporter(c clock.Clock, f func(err error)) *Reporter {
	if c == nil {
		c = clock.System
	}
	return &Reporter{clock: c, f: f}
}

func (r *Reporter) add(h *Health) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users = append(r.users, h)
}

// look begins to tell of what has changed, unless somebody does already.
func (r *Reporter) look() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginLocked()
}

func (r *Reporter) beginLocked() {
	if r.telling == nil && !r.closed && r.told != (r.lost() != nil) {
		r.telling = make(chan struct{})
		go r.tell()
	}
}

// lost is the error of the first user that finds the store lost.
func (r *Reporter) lost() error {
	for _, h := range r.users {
		if _, err := h.Lost(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reporter) tell() {
	r.mu.Lock()
	defer func() { // f may end the goroutine, as a test does that fails there
		close(r.telling)
		r.telling = nil
		r.beginLocked()
		r.mu.Unlock()
	}()
	for !r.closed {
		err := r.lost()
		if r.told == (err != nil) {
			return
		}
		r.told = !r.told
		r.call(err)
	}
}

// call lets go of the lock while f runs.
func (r *Reporter) call(err error) {
	r.mu.Unlock()
	defer r.mu.Lock()
	defer func() { _ = recover() }()
	r.f(err)
}

// Close tells nothing more, and waits for a call that is under way. It may be that call which
// closes the reporter, so it waits for two seconds at most.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	telling := r.telling
	r.mu.Unlock()
	if telling == nil {
		return
	}
	timer := r.clock.Timer(reportTime)
	defer clock.StopTimer(timer)
	select {
	case <-telling:
	case <-timer.C():
	}
}
