package localdc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// LinkOptions say how good a [Link] is. The zero value is a perfect line.
type LinkOptions struct {
	// Latency is the time that every byte takes each way, from 0 to a minute.
	Latency time.Duration
	// Jitter is added to Latency, drawn evenly from 0 to Jitter for each write. What
	// is delayed delays what comes behind it, for a connection keeps its order. From
	// 0 to a minute.
	Jitter time.Duration
	// Bandwidth is how many bytes a second each connection carries each way; 0 for no
	// bound, otherwise at least 1,000.
	Bandwidth int
	// DieAfter resets a connection once it has carried so many bytes, both ways taken
	// together; 0 for never.
	DieAfter int64
	// Seed makes the jitter. The same seed gives the same delays to the nth connection.
	Seed uint64
}

const (
	maxLinkDelay = time.Minute
	minBandwidth = 1000
)

func (o LinkOptions) validate() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Latency", o.Latency}, {"Jitter", o.Jitter}} {
		if d.value < 0 || d.value > maxLinkDelay {
			return fmt.Errorf("localdc: LinkOptions.%s is %v: want 0 to %v", d.field, d.value, maxLinkDelay)
		}
	}
	if o.Bandwidth < 0 || o.Bandwidth > 0 && o.Bandwidth < minBandwidth {
		return fmt.Errorf("localdc: LinkOptions.Bandwidth is %d: want at least %d bytes a second, or 0 for no bound", o.Bandwidth, minBandwidth)
	}
	if o.DieAfter < 0 {
		return fmt.Errorf("localdc: LinkOptions.DieAfter is %d: want a number of bytes, or 0 for never", o.DieAfter)
	}
	return nil
}

// Link is a network between clients and servers that is as bad as you like. Any client
// that can be given a dial function uses it: [Options].Link gives it to those of a
// [Cloud], and [Link.Dial] to all others.
//
//	link, err := localdc.NewLink(localdc.LinkOptions{Latency: 30 * time.Millisecond, Jitter: 100 * time.Millisecond})
//	...
//	defer link.Close()
//	cloud, err := localdc.New(localdc.Options{Limits: localdc.Published(), Link: link})
//
// A Link delays bytes on top of what the real connection takes, which is next to
// nothing on loopback. It can also lose the line for a time ([Link.Fail], [Link.Hang],
// [Link.Restore]), cut connections ([Link.Cut]) and leave them half open ([Link.Strand]).
// It runs on the real clock, and delays are never shorter than they are set, but longer
// by as much as timers are late. All methods are safe for concurrent use.
type Link struct {
	mu      sync.Mutex
	opts    LinkOptions
	state   lineState
	changed chan struct{} // closed and replaced when state changes
	cables  map[*cable]struct{}
	dialed  uint64
	closed  bool
	running sync.WaitGroup
}

// lineState is what the line does to bytes and to new connections.
type lineState uint8

const (
	lineUp lineState = iota
	lineFailing
	lineHanging
)

// NewLink returns a Link whose line is up. The error names the option that is out of
// range.
func NewLink(opts LinkOptions) (*Link, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Link{opts: opts, changed: make(chan struct{}), cables: map[*cable]struct{}{}}, nil
}

// Dial connects to a server over the line, as net.Dialer.DialContext does, and takes a
// round trip longer. While the line fails, it returns an error at once that matches
// syscall.ENETUNREACH; while it hangs, Dial blocks until it is back or ctx is done.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	delays, err := l.delays()
	if err != nil {
		return fail(err)
	}
	for range 2 { // there and back
		if err := l.carry(ctx, delays.draw()); err != nil {
			return fail(err)
		}
	}
	far, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err := l.lay(far, delays)
	if err != nil {
		_ = far.Close()
		return fail(err)
	}
	return conn, nil
}

// carry takes the time of one way, and as long as the line hangs.
func (l *Link) carry(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	arrived := timer.C
	for {
		state, changed, err := l.look()
		switch {
		case err != nil:
			return err
		case state == lineFailing:
			return os.NewSyscallError("connect", syscall.ENETUNREACH)
		case arrived == nil && state == lineUp:
			return nil
		}
		select {
		case <-arrived:
			arrived = nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look returns the state of the line and a channel that is closed when it changes.
func (l *Link) look() (lineState, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, nil, net.ErrClosed
	}
	return l.state, l.changed, nil
}

// Fail takes the line away so that both ends notice: open connections are reset, and
// new ones fail until [Link.Restore].
func (l *Link) Fail() {
	l.set(lineFailing)
	l.Cut()
}

// Hang takes the line away so that nobody notices: connections stay open and take what
// is written, nothing arrives, and new connections hang. [Link.Restore] delivers what
// was written meanwhile, in order and together, as TCP does after a short outage.
func (l *Link) Hang() { l.set(lineHanging) }

// Restore brings the line back after [Link.Fail] and [Link.Hang].
func (l *Link) Restore() { l.set(lineUp) }

func (l *Link) set(state lineState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
}

// Cut resets every open connection, and returns how many there were. What was on its
// way is lost. New connections are not touched.
func (l *Link) Cut() int { return l.each((*cable).reset) }

// Strand leaves every open connection half open, and returns how many there were: both
// ends keep it, and nothing arrives any more, not even that the other end has closed it.
// So it is when a router forgets a connection. New connections are not touched.
func (l *Link) Strand() int { return l.each((*cable).strand) }

func (l *Link) each(do func(*cable)) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.cables {
		do(c)
	}
	return len(l.cables)
}

// Close resets all connections and waits until the goroutines of the Link have ended.
// Later dials fail with net.ErrClosed.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	l.Cut()
	l.running.Wait()
	return nil
}

// delays are those of one connection.
type delays struct {
	mu   sync.Mutex
	rand *rand.Rand
	opts LinkOptions
}

func (l *Link) delays() (*delays, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	l.dialed++
	return &delays{rand: rand.New(rand.NewPCG(l.opts.Seed, l.dialed)), opts: l.opts}, nil
}

// draw returns how long the next bytes take one way.
func (d *delays) draw() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opts.Jitter == 0 {
		return d.opts.Latency
	}
	return d.opts.Latency + time.Duration(d.rand.Int64N(int64(d.opts.Jitter)+1))
}

// crossing is how long n bytes keep the line busy.
func (d *delays) crossing(n int) time.Duration {
	if d.opts.Bandwidth == 0 {
		return 0
	}
	return time.Duration(float64(n) / float64(d.opts.Bandwidth) * float64(time.Second))
}
