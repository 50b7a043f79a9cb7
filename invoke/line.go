package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoConnection matches, with errors.Is, the error of a call that was not sent because
// the client has no connection. Such an error matches [ErrNotSent] too, and the context's
// error if that was done.
var ErrNoConnection = errors.New("no connection")

// ErrConnectionLost matches the error of a call whose connection was lost while it was on
// the wire: nobody knows whether it has arrived.
var ErrConnectionLost = errors.New("connection lost")

// outage is a time without a connection.
type outage struct {
	since time.Time
	over  chan struct{} // closed when there is a connection again
}

// SetOnline tells the middleware whether the client has a connection. While it has none, no
// call takes tokens: gotd would keep it until the connection is back, and then send all such
// calls at once. A new middleware is online, and one that nobody tells stays it. Package
// client does so by itself. A call that has ended without an answer can no longer reach the
// server when its connection is lost, so its tokens are no longer pending. SetOnline does not
// block.
func (m *Middleware) SetOnline(online bool) {
	if !online {
		m.main.gone()
	}
	m.lineMu.Lock()
	defer m.lineMu.Unlock()
	o := m.outage.Load()
	switch {
	case online && o != nil:
		m.outage.Store(nil)
		close(o.over)
	case !online && o == nil:
		m.outage.Store(&outage{since: time.Now(), over: make(chan struct{})})
	}
}

// connected waits until there is a connection. A call that is not to wait is refused at
// once, and one that loses its worth after a while.
func (c *call) connected(ctx context.Context) error {
	for {
		o := c.m.outage.Load()
		if o == nil {
			return nil
		}
		if c.opt.noWait {
			return o.refuse(c.Method, nil)
		}
		var late <-chan time.Time
		if isPassing(c.Method) {
			timer := time.NewTimer(passingPatience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-o.over:
		case <-late:
			return o.refuse(c.Method, nil)
		case <-ctx.Done():
			return o.refuse(c.Method, ctx.Err())
		case <-c.m.life.Done():
			return ErrClosed
		}
	}
}

func (o *outage) refuse(method string, cause error) error {
	since := o.since.Format(time.RFC3339)
	if cause == nil {
		return fmt.Errorf("%s %w: %w since %s", method, ErrNotSent, ErrNoConnection, since)
	}
	return fmt.Errorf("%s %w: %w since %s: %w", method, ErrNotSent, ErrNoConnection, since, cause)
}
