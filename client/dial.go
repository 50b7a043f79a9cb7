package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/proto/codec"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/transport"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
)

// dialer is the program's resolver, which opens no connection that the server would refuse:
// none while a flood of the first request of each connection stands, and none for a while after
// the transport error -429, by which a data centre says that there were too many.
type dialer struct {
	to    dcs.Resolver
	choke *invoke.Middleware
	conn  *connection
	clock clock.Clock
	home  atomic.Int64 // data centre of the main connection

	mu     sync.Mutex
	pauses map[int]pause // by data centre
}

// pause is what a data centre gets after -429.
type pause struct {
	length time.Duration
	until  time.Time
}

// Telegram publishes no figure for -429. A pause doubles when the next connections are
// refused too, and starts anew once none was for as long as the longest.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
)

var _ dcs.Resolver = (*dialer)(nil)

// Primary implements dcs.Resolver.
func (d *dialer) Primary(ctx context.Context, dc int, list dcs.List) (transport.Conn, error) {
	return d.open(ctx, dc, list, true, d.to.Primary)
}

// MediaOnly implements dcs.Resolver.
func (d *dialer) MediaOnly(ctx context.Context, dc int, list dcs.List) (transport.Conn, error) {
	return d.open(ctx, dc, list, true, d.to.MediaOnly)
}

// CDN implements dcs.Resolver. gotd sends no help.getConfig there.
func (d *dialer) CDN(ctx context.Context, dc int, list dcs.List) (transport.Conn, error) {
	return d.open(ctx, dc, list, false, d.to.CDN)
}

func (d *dialer) open(
	ctx context.Context, dc int, list dcs.List, inits bool,
	dial func(context.Context, int, dcs.List) (transport.Conn, error),
) (transport.Conn, error) {
	if err := d.rest(ctx, dc); err != nil {
		return nil, fmt.Errorf("DC %d refused too many connections (-429): %w", dc, err)
	}
	if inits {
		err := d.sitOut(ctx, d.isHome(dc) && d.conn.down(), func(ctx context.Context) error {
			return d.choke.Await(ctx, d.known(dc), &tg.HelpGetConfigRequest{})
		})
		if err != nil {
			return nil, err
		}
	}
	conn, err := dial(ctx, dc, list)
	if err != nil {
		return nil, err
	}
	watched := watched{Conn: conn, refused: func() { d.refused(dc) }}
	if http, ok := conn.(polled); ok {
		return watchedPoll{watched, http}, nil
	}
	return watched, nil
}

// flooded is called when the first request of a connection got an error. gotd sends it again
// soon after flooded has returned.
func (d *dialer) flooded(ctx context.Context, dc int, main bool, answer error) {
	_ = d.sitOut(ctx, main, func(ctx context.Context) error { // gotd ends the connection if ctx is done
		return d.choke.SitOut(ctx, d.known(dc), &tg.HelpGetConfigRequest{}, answer)
	})
}

// sitOut waits. A flood above the threshold ends Run if there is no main connection for it,
// and is sat out all the same: gotd would try again at once.
func (d *dialer) sitOut(ctx context.Context, main bool, wait func(context.Context) error) error {
	// Nothing is to fail early because the time for dialling ends before the flood.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	err := wait(waiting)
	if over, ok := errors.AsType[*flood.WaitError](err); ok {
		if main && d.conn.end != nil {
			d.conn.end(over)
		}
		err = wait(invoke.WithThreshold(waiting, flood.Always))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("help.getConfig is flooded: %w", ctx.Err())
	}
	return err
}

func (d *dialer) isHome(dc int) bool { return int64(dc) == d.home.Load() }

// known is the data centre as the limiter has it. It may not know yet where home is.
func (d *dialer) known(dc int) int {
	if d.isHome(dc) {
		return 0
	}
	return dc
}

// rest waits until the pause of a data centre is over.
func (d *dialer) rest(ctx context.Context, dc int) error {
	for {
		d.mu.Lock()
		left := d.pauses[dc].until.Sub(d.clock.Now())
		d.mu.Unlock()
		if left <= 0 {
			return nil
		}
		timer := d.clock.Timer(left)
		select {
		case <-timer.C():
		case <-ctx.Done():
			clock.StopTimer(timer)
			return ctx.Err()
		}
	}
}

// refused notes a -429.
func (d *dialer) refused(dc int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	p := d.pauses[dc]
	switch {
	case now.Before(p.until): // another connection of the same time
		return
	case now.Sub(p.until) > longestPause:
		p.length = shortestPause
	default:
		p.length = min(2*p.length, longestPause)
	}
	p.until = now.Add(p.length)
	if d.pauses == nil {
		d.pauses = map[int]pause{}
	}
	d.pauses[dc] = p
}

// watched is a connection that tells of a -429.
type watched struct {
	transport.Conn
	refused func()
}

// Recv implements transport.Conn.
func (w watched) Recv(ctx context.Context, b *bin.Buffer) error {
	err := w.Conn.Recv(ctx, b)
	if e, ok := errors.AsType[*codec.ProtocolErr](err); ok && e.Code == codec.CodeTransportFlood {
		w.refused()
	}
	return err
}

// polled is what gotd asks of a connection over HTTP.
type polled interface {
	HTTPWaitParams() (maxDelay, waitAfter, maxWait int)
	StartHTTPWait(frame func(ctx context.Context) (*bin.Buffer, error))
}

type watchedPoll struct {
	watched
	polled
}
