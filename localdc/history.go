package localdc

import (
	"slices"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// remove takes messages out of their chats and returns the ids of those that
// were there, in the order given.
func (b *box) remove(ids []int, in *Chat) []int {
	var gone []int
	for _, id := range ids {
		s, ok := b.messages[id]
		if !ok || in != nil && s.chat != in {
			continue
		}
		delete(b.messages, id)
		s.chat.messages = slices.DeleteFunc(s.chat.messages, func(m *tg.Message) bool { return m.ID == id })
		gone = append(gone, id)
	}
	return gone
}

func (c *call) deleteMessages(r *tg.MessagesDeleteMessagesRequest) (bin.Encoder, error) {
	gone := c.common.remove(r.ID, nil)
	pts := c.common.step(len(gone))
	if len(gone) > 0 {
		update := &tg.UpdateDeleteMessages{Messages: gone, Pts: pts, PtsCount: len(gone)}
		c.log(c.session, &c.common, event{pts: pts, chat: c.chats.self, update: update})
	}
	return &tg.MessagesAffectedMessages{Pts: pts, PtsCount: len(gone)}, nil
}

func (c *call) deleteChannelMessages(r *tg.ChannelsDeleteMessagesRequest) (bin.Encoder, error) {
	chat, err := c.chats.channel(r.Channel)
	if err != nil {
		return nil, err
	}
	gone := chat.box.remove(r.ID, chat)
	pts := chat.box.step(len(gone))
	if len(gone) > 0 {
		update := &tg.UpdateDeleteChannelMessages{ChannelID: chat.id, Messages: gone, Pts: pts, PtsCount: len(gone)}
		c.log(c.session, chat.box, event{pts: pts, chat: chat, update: update})
	}
	return &tg.MessagesAffectedMessages{Pts: pts, PtsCount: len(gone)}, nil
}

// historyLimit is the most that one getHistory returns.
const historyLimit = 100

// getHistory pages backwards: the newest first, older than offset_id.
func (c *call) getHistory(r *tg.MessagesGetHistoryRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	if r.Limit < 0 {
		return nil, tgerr.New(400, "LIMIT_INVALID")
	}
	limit := min(r.Limit, historyLimit)
	var page []tg.MessageClass
	for i := len(chat.messages) - 1; i >= 0 && len(page) < limit; i-- {
		m := chat.messages[i]
		if (r.OffsetID > 0 && m.ID >= r.OffsetID) ||
			(r.OffsetDate > 0 && m.Date >= r.OffsetDate) ||
			(r.MaxID > 0 && m.ID >= r.MaxID) || m.ID <= r.MinID {
			continue
		}
		page = append(page, m)
	}
	return c.messagesAnswer(chat, page, len(chat.messages)), nil
}

func (c *call) getMessages(r *tg.MessagesGetMessagesRequest) (bin.Encoder, error) {
	return c.messagesAnswer(c.chats.self, c.common.pick(r.ID), 0), nil
}

func (c *call) getChannelMessages(r *tg.ChannelsGetMessagesRequest) (bin.Encoder, error) {
	chat, err := c.chats.channel(r.Channel)
	if err != nil {
		return nil, err
	}
	page := chat.box.pick(r.ID)
	return c.messagesAnswer(chat, page, len(page)), nil
}

// pick returns messages by id, an empty one for each that is not there.
func (b *box) pick(ids []tg.InputMessageClass) []tg.MessageClass {
	out := make([]tg.MessageClass, 0, len(ids))
	for _, in := range ids {
		id, _ := in.(*tg.InputMessageID)
		if id == nil {
			id = &tg.InputMessageID{}
		}
		if s, ok := b.messages[id.ID]; ok {
			out = append(out, s.message)
		} else {
			out = append(out, &tg.MessageEmpty{ID: id.ID})
		}
	}
	return out
}

// messagesAnswer wraps a page of messages: of one chat, or of any that is in
// the common box when chat is the bot itself.
func (c *call) messagesAnswer(chat *Chat, page []tg.MessageClass, total int) bin.Encoder {
	about := []*Chat{chat}
	for _, m := range page {
		if m, ok := m.(*tg.Message); ok {
			for _, p := range []tg.PeerClass{m.PeerID, m.FromID} {
				if known := c.chats.byID[mark(p)]; known != nil {
					about = append(about, known)
				}
			}
		}
	}
	users, chats := c.entities(about...)
	switch {
	case chat.isChannel():
		return &tg.MessagesChannelMessages{Pts: chat.box.pts, Count: total, Messages: page, Users: users, Chats: chats}
	case len(page) < total:
		return &tg.MessagesMessagesSlice{Count: total, Messages: page, Users: users, Chats: chats}
	default:
		return &tg.MessagesMessages{Messages: page, Users: users, Chats: chats}
	}
}
