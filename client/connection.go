package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/invoke"
)

// ErrNeverConnected matches, with errors.Is, the error of a [Client.Run] that ended with its
// context before the client was connected for the first time.
var ErrNeverConnected = errors.New("never connected")

// connection follows the client's main connection, and logs why there is none.
type connection struct {
	clock  clock.Clock
	logger *zap.Logger

	end context.CancelCauseFunc // of Run, which sets it
	// online is called when there is a connection, and when there is none.
	online func(bool)
	// life is that of the calls on the connection: they end with it.
	life context.Context
	cut  context.CancelCauseFunc

	mu    sync.Mutex
	since time.Time        // when the connection was lost, or first sought
	up    bool             // it is there
	ever  bool             // it has been there
	again bool             // gotd has said so
	tries int              // since then
	cause error            // of the last failure since then
	said  bool             // something was logged since then
	lines map[string]*line // by the root of the cause
}

// line is what is known of the log lines for one cause.
type line struct {
	next time.Time // when the next may be written
	held int       // how many were not written since the last
}

const (
	// quiet is the shortest time between two lines for one cause. While an outage lasts,
	// the time doubles.
	quiet = time.Minute
	// maxCauses bounds how many causes are kept apart.
	maxCauses = 32
)

func newConnection(c clock.Clock, logger *zap.Logger, online func(bool)) *connection {
	if c == nil {
		c = clock.System
	}
	if logger == nil {
		logger = zap.NewNop()
	}
	n := &connection{clock: c, logger: logger, lines: map[string]*line{}, online: online}
	n.life, n.cut = context.WithCancelCause(context.Background())
	return n
}

// watch makes gotd tell the connection what happens to it. The program's own callbacks are
// called as before.
func (c *connection) watch(t *telegram.Options) {
	onDead, onState := t.OnDead, t.OnConnectionState
	t.OnDead = func(err error) {
		c.failed(err)
		if onDead != nil {
			onDead(err)
		}
	}
	t.OnConnectionState = func(s telegram.ConnectionState) {
		c.changed(s)
		if onState != nil {
			onState(s)
		}
	}
}

func (c *connection) changed(s telegram.ConnectionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	switch s {
	case telegram.ConnectionStateConnecting:
		if c.since.IsZero() {
			c.since = now
		}
		c.tries++
		c.online(false)
	case telegram.ConnectionStateReady:
		if c.said {
			message := "Connected again"
			if !c.again {
				message = "Connected"
			}
			took := now.Sub(c.since).Round(time.Millisecond)
			c.logger.Info(fmt.Sprintf("%s after %v", message, took), zap.Duration("after", took), zap.Int("tries", c.tries))
		}
		c.online(true)
		c.up, c.ever, c.again, c.said, c.cause, c.tries, c.since = true, true, true, false, nil, 0, time.Time{}
	case telegram.ConnectionStateDisconnected:
		c.lostLocked(now)
		c.online(false)
		// gotd would send what is on the wire again on the next connection, all at once.
		c.cut(invoke.ErrConnectionLost)
		c.life, c.cut = context.WithCancelCause(context.Background())
	}
}

// onTheWire returns a context for a call that ends with the connection it is sent on.
func (c *connection) onTheWire(ctx context.Context) (context.Context, func()) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// established notes that there is a connection. gotd may say so a moment later.
func (c *connection) established() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ever = true
	c.online(true)
}

func (c *connection) lostLocked(now time.Time) {
	c.up = false
	if c.since.IsZero() {
		c.since = now
	}
}

// failed notes why a connection could not be made or has ended. gotd does not say which: it
// may be one of a pool.
func (c *connection) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.cause = err
	var lost time.Duration
	if !c.since.IsZero() {
		lost = now.Sub(c.since)
	}
	key := root(err).Error()
	l := c.lines[key]
	if l == nil {
		if len(c.lines) >= maxCauses {
			clear(c.lines)
		}
		l = &line{}
		c.lines[key] = l
	}
	if now.Before(l.next) {
		l.held++
		return
	}
	l.next = now.Add(max(quiet, lost))
	fields := []zap.Field{zap.Error(err)}
	if !c.since.IsZero() {
		fields = append(fields, zap.Duration("for", lost.Round(time.Millisecond)), zap.Int("tries", c.tries))
	}
	if l.held > 0 {
		fields = append(fields, zap.Int("not_logged_before", l.held))
	}
	l.held = 0
	c.said = true
	message := "Connection lost"
	if !c.up {
		message = "No connection"
	}
	c.logger.Warn(message, fields...)
}

// root is the innermost cause, which names no port that changes with each try.
func root(err error) error {
	for {
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				err = inner
				continue
			}
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				err = all[0]
				continue
			}
		}
		return err
	}
}

// down reports whether there is no main connection.
func (c *connection) down() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.up
}

// never is the error of a Run that ended with its context before there was a connection, nil
// if there was one.
func (c *connection) never(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ever {
		return nil
	}
	var took time.Duration
	if !c.since.IsZero() {
		took = c.clock.Now().Sub(c.since).Round(time.Millisecond)
	}
	if c.cause == nil {
		return fmt.Errorf("client: %w: %w after %v, before the first try had failed", ErrNeverConnected, ctx.Err(), took)
	}
	return fmt.Errorf("client: %w: %w after %v and %d tries, the last of which failed: %w", ErrNeverConnected, ctx.Err(), took, c.tries, c.cause)
}
