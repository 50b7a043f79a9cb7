package ratelimit

import (
	"time"

	"github.com/weirtg/weir/store"
)

// outage is the state of the store. While it is unavailable, one call now and then asks it,
// and the others are decided without it.
type outage struct {
	err    error // what the store last said; nil while it answers
	pause  int64 // between two asks
	next   int64 // when it may be asked again
	asking bool  // a call is asking it

	told    bool // OnOutage was called with the error
	telling bool // a goroutine is in OnOutage
}

const (
	firstPause = int64(100 * time.Millisecond)
	maxPause   = int64(time.Second)
)

// over reports whether the store may be asked.
func (o *outage) over(now int64) bool { return o.err == nil || !o.asking && now >= o.next }

// heardLocked notes the result of a question, a probe if it was asked in an outage, and
// calls OnOutage if that is a change, without the lock.
func (l *Limiter) heardLocked(err error, probe bool) {
	o := &l.outage
	if probe {
		o.asking = false
	}
	switch {
	case err == nil:
		o.err = nil
	case o.err == nil:
		o.err, o.pause = err, firstPause
		if l.policy == store.FailOpen {
			l.wakeAllLocked()
		}
	case probe:
		o.err, o.pause = err, min(2*o.pause, maxPause)
	}
	if err != nil {
		o.next = l.nowLocked() + o.pause
	}
	if o.telling {
		return // that goroutine will see the change
	}
	o.telling = true
	for o.told != (o.err != nil) {
		o.told = !o.told
		if l.events == nil {
			continue
		}
		l.tellLocked(o.err)
	}
	o.telling = false
}

// tellLocked calls OnOutage without the lock. A panic is contained: the goroutine has its turn
// at its gates, which would be closed for good.
func (l *Limiter) tellLocked(err error) {
	l.mu.Unlock()
	defer l.mu.Lock()
	defer func() { _ = recover() }()
	l.events(err)
}
