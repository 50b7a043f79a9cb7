// Package wallclock has a wall clock that never runs backward, for stores that keep
// wall-clock times beyond the life of a process.
package wallclock

import (
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// Clock reads a wall clock in whole microseconds and never returns a time before an
// earlier one. It is safe for concurrent use.
//
// When the clock below is set back by more than a second, Clock carries on from its
// last time and stays ahead by the difference. When it is set back by less, as time
// synchronization does, Clock stands still until the clock below has caught up.
type Clock struct {
	clock clock.Clock

	mu    sync.Mutex
	last  int64 // the latest time returned, in microseconds
	ahead int64 // of clock, in microseconds
}

// maxPause is the longest that Clock stands still, in microseconds.
const maxPause = 1e6

// MaxAhead is how far a stored time may be ahead of the clock and still be believed. One
// further on is damage, or the clock was wrong by more than anybody needs made up for.
const MaxAhead = 366 * 24 * time.Hour

// New returns a Clock on top of c. It starts no earlier than last, which is a time that
// another Clock returned, or zero. A last that is more than [MaxAhead] after c, or before
// 1970, counts as zero.
func New(c clock.Clock, last time.Time) *Clock {
	w := &Clock{clock: c}
	if last.UnixMicro() > 0 && !last.After(c.Now().Add(MaxAhead)) {
		w.last = last.UnixMicro()
	}
	return w
}

// Now returns the time, and how far it is ahead of the clock below.
func (c *Clock) Now() (now time.Time, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.clock.Now().UnixMicro() + c.ahead
	if back := c.last - at; back > maxPause {
		c.ahead += back
	}
	c.last = max(c.last, at)
	return time.UnixMicro(c.last), time.Duration(c.ahead) * time.Microsecond
}
