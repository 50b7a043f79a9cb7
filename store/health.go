package store

import (
	"cmp"
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

const (
	// firstPause is how long a store that was lost is left alone. Each failed try doubles
	// the pause.
	firstPause = 100 * time.Millisecond
	// DefaultLongestPause bounds the pause between two tries of a store that was lost.
	DefaultLongestPause = 5 * time.Second
)

// Health is whether a store is there, for one of its users. In an outage it lets one caller
// at a time try the store again, at intervals that grow, so that the others need not wait
// for a store that does not answer:
//
//	attempt, err := health.Begin()
//	if err != nil {
//		return err // lost, and not to be asked now
//	}
//	err = … ask the store …
//	attempt.End(err)
//
// It is safe for concurrent use, starts no goroutine, and its methods do not block.
type Health struct {
	clock    clock.Clock
	longest  time.Duration
	reporter *Reporter

	mu    sync.Mutex
	err   error         // why the store is lost, nil while it is there
	since time.Time     // when it was lost
	pause time.Duration // between two tries
	next  time.Time     // when the next is due
	tries bool          // somebody does
}

// HealthOptions of a [Health]. The zero value is ready for use.
type HealthOptions struct {
	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock
	// LongestPause bounds the pause between two tries, which begins with 100 ms and doubles;
	// [DefaultLongestPause] when 0.
	LongestPause time.Duration
	// Reporter reports each change. Several users of a store may share one. It may be nil.
	Reporter *Reporter
}

// NewHealth returns the health of a store that is there.
func NewHealth(opts HealthOptions) *Health {
	h := &Health{clock: opts.Clock, longest: cmp.Or(opts.LongestPause, DefaultLongestPause), reporter: opts.Reporter}
	if h.clock == nil {
		h.clock = clock.System
	}
	h.reporter.add(h)
	return h
}

// Lost returns why and since when the store is lost. The error is nil while it is there.
func (h *Health) Lost() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.err
}

// Attempt is a question to a store. It has to be ended.
type Attempt struct {
	health *Health
	probe  bool // it began in an outage
}

// Begin is called before the store is asked. It returns the error that the store was lost
// with if it is not to be asked now: the next try is not due yet, or somebody else makes it.
func (h *Health) Begin() (Attempt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		return Attempt{health: h}, nil
	}
	if h.tries || h.clock.Now().Before(h.next) {
		return Attempt{}, h.err
	}
	h.tries = true
	return Attempt{health: h, probe: true}, nil
}

// End notes how the attempt ended: err is nil if the store answered. lost reports whether
// the store was there until now and is lost with this attempt.
func (a Attempt) End(err error) (lost bool) {
	h := a.health
	h.mu.Lock()
	before := h.err
	if a.probe {
		h.tries = false
		h.pause = min(2*h.pause, h.longest)
	}
	h.err = err
	switch {
	case err == nil:
		h.since = time.Time{}
	case before == nil:
		h.since, h.pause = h.clock.Now(), min(firstPause, h.longest)
		h.next = h.since.Add(h.pause)
	default:
		h.next = h.clock.Now().Add(h.pause)
	}
	h.mu.Unlock()
	if (before == nil) != (err == nil) {
		h.reporter.look()
	}
	return before == nil && err != nil
}

// Abandon ends an attempt that has shown nothing, such as one whose context was done. If it
// was a try of a store that is lost, somebody else may make it at once.
func (a Attempt) Abandon() {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	if a.probe {
		a.health.tries = false
	}
}

// Heard notes what is known of the store without an attempt, such as why a watch ended. A nil
// error says that the store has answered.
func (h *Health) Heard(err error) { Attempt{health: h}.End(err) }

// Due returns how long it is until the next try is due, 0 if it is. lost is false while the
// store is there.
func (h *Health) Due() (wait time.Duration, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		return 0, false
	}
	return max(0, h.next.Sub(h.clock.Now())), true
}
