package localdc

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/gotd/td/proto/codec"
)

// greetTimeout bounds how long a connection may take to say which transport it
// speaks.
const greetTimeout = 10 * time.Second

// listener hands tgtest connections that have already said which transport
// they speak. Left to itself tgtest reads that while it accepts: one client
// that connects and says nothing would keep out all others, and one that hangs
// up at once would end the server.
type listener struct {
	net.Listener
	dc    *dataCentre
	ready chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newListener(dc *dataCentre, l net.Listener) *listener {
	return &listener{Listener: l, dc: dc, ready: make(chan net.Conn), done: make(chan struct{})}
}

// run accepts until the listener is closed.
func (l *listener) run() {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			select {
			case <-l.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors: it passes
				continue
			}
		}
		conn := newConn(l.dc, raw)
		if !l.dc.cloud.attach(conn) {
			_ = raw.Close()
			return
		}
		l.dc.cloud.goes.Go(func() { l.greet(conn) })
	}
}

// greet reads the first bytes of a connection and passes it on to Accept.
func (l *listener) greet(c *conn) {
	head := make([]byte, 4)
	_ = c.Conn.SetReadDeadline(time.Now().Add(greetTimeout))
	n, err := io.ReadFull(c.Conn, head[:1])
	if err == nil && head[0] != codec.AbridgedClientStart[0] {
		_, err = io.ReadFull(c.Conn, head[1:])
		n = len(head)
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
	if err != nil {
		l.dc.cloud.detach(c)
		return
	}
	c.head = head[:n]
	select {
	case l.ready <- c:
	case <-l.done:
		l.dc.cloud.detach(c)
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	var err error
	l.once.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}
