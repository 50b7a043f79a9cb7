package localdc

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// cable is one connection over a [Link]: the client holds one end of a pipe, and the
// goroutines of the cable carry bytes between the other end and the real connection.
type cable struct {
	link    *Link
	delays  *delays
	near    net.Conn // the client's side
	far     net.Conn // the real connection
	carried atomic.Int64

	once     sync.Once
	gone     chan struct{} // closed when the connection is reset
	stranded atomic.Bool
}

// linkConn is the client's end. Its addresses are those of the real connection.
type linkConn struct {
	net.Conn
	far net.Conn
}

func (c linkConn) LocalAddr() net.Addr  { return c.far.LocalAddr() }
func (c linkConn) RemoteAddr() net.Addr { return c.far.RemoteAddr() }

// lay makes a connection of the link out of a real one.
func (l *Link) lay(far net.Conn, d *delays) (net.Conn, error) {
	client, near := net.Pipe()
	c := &cable{link: l, delays: d, near: near, far: far, gone: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_, _ = client.Close(), near.Close()
		return nil, net.ErrClosed
	}
	l.cables[c] = struct{}{}
	l.running.Go(func() {
		var ways sync.WaitGroup
		ways.Go(func() { c.carry(near, far) })
		ways.Go(func() { c.carry(far, near) })
		ways.Wait()
		c.reset()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cables, c)
	})
	return linkConn{client, far}, nil
}

// reset ends the connection at both ends, at once.
func (c *cable) reset() {
	c.once.Do(func() {
		close(c.gone)
		if tcp, ok := c.far.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the server sees a reset, as from a network that is gone
		}
		_, _ = c.near.Close(), c.far.Close()
	})
}

func (c *cable) strand() { c.stranded.Store(true) }

// parcel is what was written at once, or the end of what was written.
type parcel struct {
	data []byte
	due  time.Time
	end  bool
}

const (
	// readSize is the most that one parcel carries.
	readSize = 32 << 10
	// inFlight is how many parcels a way holds. A sender that is further ahead than
	// that blocks, as it does when the buffers of TCP are full.
	inFlight = 1024
)

// carry brings bytes from one end to the other until one of them is closed, and then
// tells the other end, which takes as long as bytes do.
func (c *cable) carry(from io.Reader, to io.WriteCloser) {
	line := make(chan parcel, inFlight)
	var ends sync.WaitGroup
	ends.Go(func() { c.deliver(line, to) })
	defer ends.Wait()
	defer close(line)

	var due, busy time.Time
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		now := time.Now()
		if busy.Before(now) {
			busy = now
		}
		busy = busy.Add(c.delays.crossing(n))
		if next := busy.Add(c.delays.draw()); next.After(due) {
			due = next
		}
		p := parcel{data: append([]byte(nil), buf[:n]...), due: due, end: err != nil}
		select {
		case line <- p:
		case <-c.gone:
			return
		}
		if err != nil {
			return
		}
	}
}

// deliver hands over what is due. Once the receiver has closed its end, the rest is
// thrown away, so that the sender does not block.
func (c *cable) deliver(line <-chan parcel, to io.WriteCloser) {
	open := true
	for p := range line {
		if !open || c.wait(p.due) != nil {
			open = false
			continue
		}
		if len(p.data) > 0 {
			_, err := to.Write(p.data)
			open = err == nil
			if most := c.delays.opts.DieAfter; most > 0 && c.carried.Add(int64(len(p.data))) >= most {
				c.reset()
			}
		}
		if p.end {
			_ = to.Close()
		}
	}
}

var errGone = errors.New("the connection was reset")

// wait blocks until bytes that are due then arrive. Those of a half-open connection
// never do.
func (c *cable) wait(due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	arrived := timer.C
	for {
		state, changed, err := c.link.look()
		if err != nil {
			return err
		}
		if c.stranded.Load() {
			<-c.gone
			return errGone
		}
		if arrived == nil && state != lineHanging {
			return nil
		}
		select {
		case <-arrived:
			arrived = nil
		case <-changed:
		case <-c.gone:
			return errGone
		}
	}
}
