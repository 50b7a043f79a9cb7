package localdc

import (
	"context"
	"iter"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/proto"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// box numbers messages and events: one for all private chats and basic groups,
// one for each supergroup and channel.
type box struct {
	lastID   int
	pts      int
	messages map[int]*stored
	events   []event
}

// stored is a message that is there.
type stored struct {
	chat    *Chat
	message *tg.Message
}

// event is one step of pts: a new message or another update.
type event struct {
	pts    int
	chat   *Chat
	from   *Chat // who wrote the message; nil for none
	id     int   // of a new message, 0 for another update
	update tg.UpdateClass
}

// A box starts at 1, for a client takes 0 as "no state".
func newBox() box { return box{pts: 1, messages: map[int]*stored{}} }

func (b *box) nextID() int {
	b.lastID++
	return b.lastID
}

// step advances pts by n events and returns it.
func (b *box) step(n int) int {
	b.pts += n
	return b.pts
}

// push sends an update to all sessions that want updates, but for the one that
// caused it and has it in its answer.
func (c *Cloud) push(cause *session, update tg.UpdateClass, about ...*Chat) {
	users, chats := c.entities(about...)
	message, err := encode(&tg.Updates{
		Updates: []tg.UpdateClass{update},
		Users:   users,
		Chats:   chats,
		Date:    c.date(),
	})
	if err != nil {
		return // it stays in the log, for getDifference to fail with
	}
	reached := map[[8]byte]bool{}
	for s := range c.listeners() {
		reached[s.wire.AuthKey.ID] = true
		if s != cause {
			s.push(message)
		}
	}
	for key := range c.auth.logins {
		if !reached[key] {
			c.auth.missed[key] = true
		}
	}
}

// listeners are the sessions that updates go to.
func (c *Cloud) listeners() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		for _, dc := range c.dcs {
			if dc.id != c.opts.Home {
				continue
			}
			for _, s := range dc.sessions {
				if _, ok := c.auth.logins[s.wire.AuthKey.ID]; ok && s.updates && !yield(s) {
					return
				}
			}
		}
	}
}

func (s *session) push(message bin.Encoder) {
	s.conn.send(func() {
		// A connection that is gone gets it by getDifference.
		_ = s.conn.dc.server.Send(context.Background(), s.wire, proto.MessageFromServer, message)
	})
}

// catchUp tells a session that its client has missed updates while it was away.
func (c *Cloud) catchUp(s *session) {
	key := s.wire.AuthKey.ID
	if s.updates && s.conn.dc.id == c.opts.Home && c.auth.missed[key] {
		delete(c.auth.missed, key)
		s.push(&tg.UpdatesTooLong{})
	}
}

// log remembers an event for getDifference and sends it out.
func (c *Cloud) log(cause *session, b *box, e event) {
	b.events = append(b.events, e)
	about := []*Chat{e.chat}
	if e.from != nil {
		about = append(about, e.from)
	}
	c.push(cause, e.update, about...)
}

func (c *call) state() tg.UpdatesState {
	return tg.UpdatesState{Pts: c.common.pts, Date: c.date()}
}

func (c *call) getState(*tg.UpdatesGetStateRequest) (bin.Encoder, error) {
	state := c.state()
	return &state, nil
}

func (c *call) getDifference(r *tg.UpdatesGetDifferenceRequest) (bin.Encoder, error) {
	if r.Pts < 0 || r.Pts > c.common.pts {
		return nil, tgerr.New(400, "PERSISTENT_TIMESTAMP_INVALID")
	}
	if r.Pts == c.common.pts {
		return &tg.UpdatesDifferenceEmpty{Date: c.date()}, nil
	}
	messages, others, about := c.common.since(r.Pts)
	users, chats := c.entities(about...)
	return &tg.UpdatesDifference{
		NewMessages: messages, OtherUpdates: others, Users: users, Chats: chats, State: c.state(),
	}, nil
}

func (c *call) getChannelDifference(r *tg.UpdatesGetChannelDifferenceRequest) (bin.Encoder, error) {
	chat, err := c.chats.channel(r.Channel)
	if err != nil {
		return nil, err
	}
	if r.Pts < 0 || r.Pts > chat.box.pts {
		return nil, tgerr.New(400, "PERSISTENT_TIMESTAMP_INVALID")
	}
	if r.Pts == chat.box.pts {
		return &tg.UpdatesChannelDifferenceEmpty{Final: true, Pts: chat.box.pts}, nil
	}
	messages, others, about := chat.box.since(r.Pts)
	users, chats := c.entities(append(about, chat)...)
	return &tg.UpdatesChannelDifference{
		Final: true, Pts: chat.box.pts, NewMessages: messages, OtherUpdates: others, Users: users, Chats: chats,
	}, nil
}

// since returns what happened after pts: the new messages that are still
// there, as they are now, and everything else.
func (b *box) since(pts int) (messages []tg.MessageClass, others []tg.UpdateClass, about []*Chat) {
	for _, e := range b.events {
		if e.pts <= pts {
			continue
		}
		about = append(about, e.chat)
		if e.from != nil {
			about = append(about, e.from)
		}
		if e.id == 0 {
			others = append(others, e.update)
		} else if s, ok := b.messages[e.id]; ok {
			messages = append(messages, s.message)
		}
	}
	return messages, others, about
}
