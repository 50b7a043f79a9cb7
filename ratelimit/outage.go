package ratelimit

import (
	"time"

	"github.com/weirtg/weir/store"
)

// An outage of the store: it is asked once in a while, by whichever call comes then,
// and all others are decided without it.
type outage struct {
	err    error // what the store last said; nil while it answers
	pause  int64 // between two asks
	next   int64 // when it may be asked again
	asking bool  // somebody does

	told    bool // the program knows of the outage
	telling bool // somebody tells it
}

const (
	firstPause = int64(100 * time.Millisecond)
	maxPause   = int64(time.Second)
)

// over reports whether the store may be asked.
func (o *outage) over(now int64) bool { return o.err == nil || !o.asking && now >= o.next }

// heardLocked notes how an ask ended, which was a probe if it began in an outage, and
// tells the program of a change. The lock is not held then.
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
		return // whoever does will see
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

// tellLocked lets go of the lock while the program is told. A panic of it is contained: the
// call that tells it has its turn at its gates, and they would be closed for good.
func (l *Limiter) tellLocked(err error) {
	l.mu.Unlock()
	defer l.mu.Lock()
	defer func() { _ = recover() }()
	l.events(err)
}
