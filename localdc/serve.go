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
	// cdn tells that it is answered in the CDN, and nowhere else.
	cdn    bool
	kind   Kind
	handle func(*call, bin.Object) (bin.Encoder, error)
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
	s := c.subject(r, call.dc.id)
	entry := Call{Time: call.now, DC: s.dc, Method: s.method, Chat: s.chat, Messages: s.messages}
	var out encoded
	result, refused, err := c.decide(call, r, s)
	if err == nil {
		out, err = encode(result)
	}
	entry.Wait = time.Duration(refused.seconds) * time.Second
	entry.Inside, entry.Since = refused.inside, refused.since
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
// limits on calls are paid by whatever passes them.
func (c *Cloud) decide(call *call, r *request, s subject) (bin.Encoder, refusal, error) {
	if r.name == malformed {
		return nil, refusal{}, tgerr.New(400, "INPUT_REQUEST_INVALID")
	}
	if err := c.script.fail(s); err != nil {
		return nil, refusal{}, err
	}
	m, known := c.methods[r.id]
	if err := c.admissible(call, m, known); err != nil {
		return nil, refusal{}, err
	}
	now := c.elapsed(call.now)
	calls, messages := charges(s)
	if refused, ok := c.judge.admit(now, s, append(calls, messages...)); !ok {
		return nil, refused, refused.rpc()
	}
	c.judge.take(now, calls)
	if !known {
		return nil, refusal{}, tgerr.New(400, "METHOD_INVALID")
	}
	result, err := m.handle(call, r.body)
	if err != nil {
		return nil, refusal{}, err
	}
	c.judge.take(now, messages)
	return result, refusal{}, nil
}

// charges lists what a call would take: what limits count in calls, and what
// they count in messages.
func charges(s subject) (calls, messages []charge) {
	calls = append(calls, charge{key: gateKey{kind: gateMethod, method: s.method}, cost: 1})
	if s.chat != 0 {
		calls = append(calls, charge{key: gateKey{kind: gateChatMethod, method: s.method, id: s.chat}, cost: 1})
	}
	switch s.kind {
	case Parts:
		calls = append(calls, charge{key: gateKey{kind: gateParts, id: int64(s.dc)}, cost: 1})
	case Reads:
		calls = append(calls, charge{key: gateKey{kind: gateReads}, cost: 1})
	case Writes:
		calls = append(calls, charge{key: gateKey{kind: gateWrites}, cost: 1})
	}
	if s.messages == 0 || s.chat == 0 {
		return calls, nil
	}
	kind := gateChat
	if s.chat < 0 {
		kind = gateGroup
	}
	messages = append(messages,
		charge{key: gateKey{kind: gateAccount}, cost: s.messages},
		charge{key: gateKey{kind: kind, id: s.chat}, cost: s.messages})
	if s.sends {
		messages = append(messages, charge{key: gateKey{kind: gateSlow, id: s.chat}, cost: 1})
	}
	return calls, messages
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
