package invoke

import (
	"sync"
	"time"

	"github.com/gotd/td/clock"
)

// condenser lets one of many like lines through in a period, with the number of
// those that it held back. Its keys are methods and kinds, of which there are few.
type condenser struct {
	clock clock.Clock
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	next time.Time
	held int
}

func newCondenser(c clock.Clock) *condenser {
	return &condenser{clock: c, lines: map[string]*line{}}
}

// first reports whether the line is to be written, and how many were held back
// since the last one that was.
func (c *condenser) first(key string, period time.Duration) (held int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	l := c.lines[key]
	if l == nil {
		l = &line{}
		c.lines[key] = l
	}
	if now.Before(l.next) {
		l.held++
		return 0, false
	}
	held, l.held = l.held, 0
	l.next = now.Add(period)
	return held, true
}
