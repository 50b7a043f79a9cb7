package localdc

import (
	"errors"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tgerr"
	"github.com/gotd/td/tgtest"
)

// method is how one function is answered.
type method struct {
	// open tells that it needs no login.
	open bool
	// anywhere tells that it is answered outside the home data centre too.
	anywhere bool
	handle   func(*call, bin.Object) (bin.Encoder, error)
}

// call is one request being answered. Cloud.mu is held all the while.
type call struct {
	*Cloud
	dc      *dataCentre
	key     [8]byte // id of the auth key
	session *session
	now     time.Time
}

// date is now as messages are dated.
func (c *Cloud) date() int { return int(c.opts.Clock.Now().Unix()) }

// onMessage implements tgtest.Handler. It runs in the connection's turn, so it
// decides at once and leaves the answer to the connection's queue: an answer
// that is delayed holds nobody up.
func (d *dataCentre) onMessage(server *tgtest.Server, req *tgtest.Request) error {
	c := d.cloud
	r, err := c.schema.decode(req.Buf)
	if err != nil {
		r = &request{name: malformed}
	}
	if r == nil {
		return nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := d.session(req.Session)
	if err != nil {
		return err
	}
	if !s.fresh(req.MsgID) {
		return nil
	}
	if r.noUpdates {
		s.updates = false
	}
	result, rpcErr := c.answer(&call{Cloud: c, dc: d, key: req.Session.AuthKey.ID, session: s, now: c.opts.Clock.Now()}, r)
	reply := &tgtest.Request{DC: req.DC, Session: req.Session, MsgID: req.MsgID, RequestCtx: req.RequestCtx}
	write := func() {
		// A connection that is gone takes its answers along.
		if rpcErr != nil {
			_ = server.SendErr(reply, rpcErr)
		} else {
			_ = server.SendResult(reply, result)
		}
	}
	c.script.deliver(c, r.name, s.conn, write, func() {
		_ = server.SendAck(reply.RequestCtx, reply.Session, reply.MsgID)
	})
	c.catchUp(s)
	return nil
}

// session finds the session of a message on the connection at work, or starts
// it. The caller holds Cloud.mu and the turn.
func (d *dataCentre) session(wire tgtest.Session) (*session, error) {
	conn := d.current
	if s, ok := d.sessions[wire.ID]; ok {
		if s.conn == conn {
			return s, nil
		}
		// The client came back with a session whose old connection seems alive,
		// and tgtest answers on the old one. End both, for a clean slate; gotd
		// starts a new session with each connection and never comes here.
		d.cloud.detachLocked(s.conn)
		return nil, errors.New("session moved to another connection")
	}
	s := &session{wire: wire, conn: conn, updates: true, seen: map[int64]struct{}{}}
	conn.sessions[wire.ID] = s
	if _, ok := d.cloud.conns[conn]; !ok {
		return nil, errors.New("connection was cut")
	}
	d.sessions[wire.ID] = s
	return s, nil
}

// answer decides a call and records it.
func (c *Cloud) answer(call *call, r *request) (encoded, *tgerr.Error) {
	subject := c.subject(r.body)
	entry := Call{
		Time:     call.now,
		DC:       call.dc.id,
		Method:   r.name,
		Chat:     subject.chat,
		Messages: subject.messages,
	}
	var out encoded
	result, ordered, err := c.decide(call, r, subject)
	if err == nil {
		out, err = encode(result)
	}
	entry.Wait = ordered
	var rpc *tgerr.Error
	if err != nil && !errors.As(err, &rpc) {
		rpc = tgerr.New(500, "INTERNAL_SERVER_ERROR")
	}
	if rpc != nil {
		entry.Code, entry.Error = rpc.Code, rpc.Message
	}
	c.record.add(entry)
	c.notify()
	return out, rpc
}

// decide lets a call pass what can refuse it, in order: the script, the login,
// the limits, the method itself. Messages are paid for when they are made; the
// limit of a method is paid by whatever passes it.
func (c *Cloud) decide(call *call, r *request, s subject) (_ bin.Encoder, ordered time.Duration, _ error) {
	if r.name == malformed {
		return nil, 0, tgerr.New(400, "INPUT_REQUEST_INVALID")
	}
	if err := c.script.fail(r.name); err != nil {
		return nil, 0, err
	}
	m, known := c.methods[r.id]
	if err := c.admissible(call, m, known); err != nil {
		return nil, 0, err
	}
	now := c.elapsed(call.now)
	charges := c.charges(r.name, call.dc.id, s)
	if f, ok := c.judge.admit(now, charges); !ok {
		return nil, time.Duration(f.seconds) * time.Second, f.rpc()
	}
	c.judge.take(now, charges[:1])
	if !known {
		return nil, 0, tgerr.New(400, "METHOD_INVALID")
	}
	result, err := m.handle(call, r.body)
	if err != nil {
		return nil, 0, err
	}
	c.judge.take(now, charges[1:])
	return result, 0, nil
}

// charges lists what a call would take. The first is the method's own.
func (c *Cloud) charges(name string, dc int, s subject) []charge {
	out := []charge{{key: gateKey{kind: gateMethod, method: name}, cost: 1}}
	switch {
	case s.part:
		out = append(out, charge{key: gateKey{kind: gateParts, id: int64(dc)}, cost: 1})
	case s.messages > 0 && s.chat != 0:
		out = append(out, charge{key: gateKey{kind: gateAccount}, cost: s.messages})
		kind := gateChat
		if s.chat < 0 {
			kind = gateGroup
		}
		out = append(out, charge{key: gateKey{kind: kind, id: s.chat}, cost: s.messages})
		if s.sends {
			out = append(out, charge{key: gateKey{kind: gateSlow, id: s.chat}, cost: 1})
		}
	}
	return out
}

// encoded is an answer ready for the wire. Encoding an object of gotd's writes
// to it, so it is done under the lock, once, and not when connections get to it.
type encoded []byte

// Encode implements bin.Encoder.
func (e encoded) Encode(b *bin.Buffer) error {
	b.Put(e)
	return nil
}

func encode(o bin.Encoder) (encoded, error) {
	var b bin.Buffer
	if err := o.Encode(&b); err != nil {
		return nil, err
	}
	return b.Buf, nil
}
