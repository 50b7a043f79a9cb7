package store

import (
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// reportTime is how long [Reporter.Close] waits for the function that it calls.
const reportTime = 2 * time.Second

// Reporter calls a function when a store is lost and when it is back. A store is lost as long
// as one of its users ([Health]) finds it so. The function is called once for each change, in
// order, on a goroutine that ends with the call: whoever met the change may hold locks, and the
// function may want them. Changes that undo each other during a call are left out. A nil
// Reporter calls nothing.
type Reporter struct {
	clock clock.Clock
	f     func(error)

	mu       sync.Mutex
	users    []*Health
	reported bool          // f was called with the loss
	running  chan struct{} // closed when the goroutine ends; nil while there is none
	closed   bool
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

// look starts the goroutine if there is something to report and it does not run already.
func (r *Reporter) look() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginLocked()
}

func (r *Reporter) beginLocked() {
	if r.running == nil && !r.closed && r.reported != (r.lost() != nil) {
		r.running = make(chan struct{})
		go r.run()
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

func (r *Reporter) run() {
	r.mu.Lock()
	defer func() { // f may end the goroutine, as a test does that fails there
		close(r.running)
		r.running = nil
		r.beginLocked()
		r.mu.Unlock()
	}()
	for !r.closed {
		err := r.lost()
		if r.reported == (err != nil) {
			return
		}
		r.reported = !r.reported
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

// Close has no more calls made, and waits for one that is under way: for two seconds at most,
// because that call may be the one that closes the reporter.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	running := r.running
	r.mu.Unlock()
	if running == nil {
		return
	}
	timer := r.clock.Timer(reportTime)
	defer clock.StopTimer(timer)
	select {
	case <-running:
	case <-timer.C():
	}
}
