package localdc

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/gotd/td/tgtest"
)

// conn is one client connection.
//
// It lets the connections of a data centre take turns: from the moment Read
// returns until Read is called again, the connection is the only one at work.
// tgtest guards its map of auth keys with one lock for writing and another for
// reading, so a key exchange that ends while another connection sends a message
// would tear the map; and it does not tell a handler which connection a request
// came on. Taking turns settles both. Answers leave through the connection's own
// queue, so that nothing but tgtest's own service messages is written in a turn.
type conn struct {
	net.Conn
	dc   *dataCentre
	head []byte // read ahead by the listener

	turn   atomic.Bool
	closed atomic.Bool

	sessions map[int64]*session // guarded by Cloud.mu

	done  chan struct{} // closed by Cloud.detach
	wake  chan struct{}
	outMu sync.Mutex
	out   []func()
}

func newConn(dc *dataCentre, raw net.Conn) *conn {
	return &conn{
		Conn: raw, dc: dc, sessions: map[int64]*session{}, done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	c.yield()
	n, err := c.Conn.Read(p)
	if err == nil {
		c.dc.turn.Lock()
		c.dc.current = c
		c.turn.Store(true)
	}
	return n, err
}

func (c *conn) yield() {
	if c.turn.CompareAndSwap(true, false) {
		c.dc.current = nil
		c.dc.turn.Unlock()
	}
}

// Close implements net.Conn. tgtest calls it when it is done with the
// connection; everybody else uses Cloud.detach.
//
// tgtest goes on sending a session's answers to the connection that it saw the
// session on first, so it is told to forget the sessions. It closes their
// connection once more on the way, holding a lock that it needs itself: hence
// the goroutine and the flag.
func (c *conn) Close() error {
	c.yield()
	if c.closed.Swap(true) {
		return nil
	}
	if gone := c.dc.cloud.detach(c); len(gone) > 0 {
		c.dc.cloud.goes.Go(func() {
			for _, s := range gone {
				c.dc.server.ForceDisconnect(s.wire)
			}
		})
	}
	return nil
}

// send queues what is to be written; it never blocks.
func (c *conn) send(write func()) {
	c.outMu.Lock()
	c.out = append(c.out, write)
	c.outMu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is queued, in order, until the connection is gone.
func (c *conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.outMu.Lock()
		batch := c.out
		c.out = nil
		c.outMu.Unlock()
		for _, write := range batch {
			write()
		}
	}
}

// session is one MTProto session on a connection.
type session struct {
	wire tgtest.Session
	conn *conn
	// updates tells whether updates are sent to it: not if its calls come
	// inside invokeWithoutUpdates.
	updates bool
	// seen has the last messages by id, so that one sent twice is served once.
	seen map[int64]struct{}
	ring []int64
}

// seenLimit is how many message ids a session remembers. A client sends again
// what was not acknowledged within seconds, so few are ever in doubt.
const seenLimit = 1024

// fresh tells whether a message is new, and remembers it.
func (s *session) fresh(id int64) bool {
	if _, ok := s.seen[id]; ok {
		return false
	}
	if len(s.ring) == seenLimit {
		delete(s.seen, s.ring[0])
		s.ring = s.ring[1:]
	}
	s.seen[id] = struct{}{}
	s.ring = append(s.ring, id)
	return true
}

// attach adds a connection; false when the Cloud is closed.
func (c *Cloud) attach(n *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.conns[n] = struct{}{}
	c.goes.Go(n.write)
	return true
}

// detach closes a connection and returns the sessions that it carried.
func (c *Cloud) detach(n *conn) []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.detachLocked(n)
}

func (c *Cloud) detachLocked(n *conn) []*session {
	if _, ok := c.conns[n]; ok {
		delete(c.conns, n)
		close(n.done)
		_ = n.Conn.Close()
	}
	out := make([]*session, 0, len(n.sessions))
	for id, s := range n.sessions {
		out = append(out, s)
		if n.dc.sessions[id] == s {
			delete(n.dc.sessions, id)
		}
	}
	return out
}

// Cut closes every client connection and returns how many there were. Keys and
// logins stay valid: a client may come back at once. What was not yet answered
// never will be.
func (c *Cloud) Cut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.conns)
	for conn := range c.conns {
		c.detachLocked(conn)
	}
	return n
}
