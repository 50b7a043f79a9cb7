package localdc

import (
	"slices"
	"unicode/utf8"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// draft is a message about to be made.
type draft struct {
	randomID int64
	text     string
	entities []tg.MessageEntityClass
	markup   tg.ReplyMarkupClass
	replyTo  tg.InputReplyToClass
	media    tg.MessageMediaClass
	forward  tg.MessageFwdHeader
	group    int64
	silent   bool
}

// checkText refuses text that Telegram would refuse: limit is in code points.
func checkText(text string, limit int, tooLong string) error {
	if !utf8.ValidString(text) {
		return tgerr.New(400, "INPUT_TEXT_INVALID")
	}
	if utf8.RuneCountInString(text) > limit {
		return tgerr.New(400, tooLong)
	}
	return nil
}

// post makes messages of the bot in a chat and answers the call with them.
// Nothing is made if one random id was used before.
func (c *call) post(chat *Chat, drafts ...draft) (bin.Encoder, error) {
	fresh := map[int64]struct{}{}
	for _, d := range drafts {
		_, before := c.sent[d.randomID]
		_, twice := fresh[d.randomID]
		if before || twice {
			return nil, tgerr.New(500, "RANDOM_ID_DUPLICATE")
		}
		fresh[d.randomID] = struct{}{}
	}
	users, chats := c.entities(chat)
	out := &tg.Updates{Users: users, Chats: chats, Date: c.date()}
	for _, d := range drafts {
		c.sent[d.randomID] = struct{}{}
		m := c.chats.self.write(chat, d, c.date())
		out.Updates = append(out.Updates,
			&tg.UpdateMessageID{ID: m.ID, RandomID: d.randomID},
			c.arrive(c.session, chat, c.chats.self, m))
		chat.inbox = append(chat.inbox, m)
	}
	return out, nil
}

// write makes a message of a user or of the bot.
func (from *Chat) write(chat *Chat, d draft, date int) *tg.Message {
	m := &tg.Message{
		Out:         from.kind == kindSelf,
		Silent:      d.silent,
		ID:          chat.box.nextID(),
		PeerID:      chat.peer(),
		Date:        date,
		Message:     d.text,
		Entities:    d.entities,
		ReplyMarkup: d.markup,
		Media:       d.media,
		FwdFrom:     d.forward,
		GroupedID:   d.group,
	}
	if chat.kind == kindChannel {
		m.Post = true
	} else {
		m.FromID = from.peer()
	}
	if to, ok := d.replyTo.(*tg.InputReplyToMessage); ok {
		m.ReplyTo = &tg.MessageReplyHeader{ReplyToMsgID: to.ReplyToMsgID}
	}
	m.SetFlags()
	return m
}

// arrive puts a message in its chat and tells every session; it returns the
// update for the answer.
func (c *Cloud) arrive(cause *session, chat, from *Chat, m *tg.Message) tg.UpdateClass {
	b := chat.box
	b.messages[m.ID] = &stored{chat: chat, message: m}
	chat.messages = append(chat.messages, m)
	pts := b.step(1)
	var update tg.UpdateClass = &tg.UpdateNewMessage{Message: m, Pts: pts, PtsCount: 1}
	if chat.isChannel() {
		update = &tg.UpdateNewChannelMessage{Message: m, Pts: pts, PtsCount: 1}
	}
	c.log(cause, b, event{pts: pts, chat: chat, from: from, id: m.ID, update: update})
	return update
}

func (c *call) sendMessage(r *tg.MessagesSendMessageRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	if r.Message == "" {
		return nil, tgerr.New(400, "MESSAGE_EMPTY")
	}
	if err := checkText(r.Message, messageLengthMax, "MESSAGE_TOO_LONG"); err != nil {
		return nil, err
	}
	return c.post(chat, draft{
		randomID: r.RandomID, text: r.Message, entities: r.Entities, markup: r.ReplyMarkup, replyTo: r.ReplyTo, silent: r.Silent,
	})
}

// own finds a message of the bot's in a chat.
func (c *call) own(chat *Chat, id int) (*tg.Message, error) {
	s, ok := chat.box.messages[id]
	if !ok || s.chat != chat {
		return nil, tgerr.New(400, "MESSAGE_ID_INVALID")
	}
	if !s.message.Out {
		return nil, tgerr.New(403, "MESSAGE_AUTHOR_REQUIRED")
	}
	return s.message, nil
}

func (c *call) editMessage(r *tg.MessagesEditMessageRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	old, err := c.own(chat, r.ID)
	if err != nil {
		return nil, err
	}
	limit, tooLong := messageLengthMax, "MESSAGE_TOO_LONG"
	if old.Media != nil {
		limit, tooLong = captionLengthMax, "MEDIA_CAPTION_TOO_LONG"
	}
	if err := checkText(r.Message, limit, tooLong); err != nil {
		return nil, err
	}

	m := *old
	if text, ok := r.GetMessage(); ok {
		if text == "" && old.Media == nil {
			return nil, tgerr.New(400, "MESSAGE_EMPTY")
		}
		m.Message, m.Entities = text, r.Entities
	}
	m.ReplyMarkup = r.ReplyMarkup // an edit that names none takes the keyboard away
	if r.Media != nil {
		if m.Media, err = c.media(r.Media); err != nil {
			return nil, err
		}
	}
	if same(old, &m) {
		return nil, tgerr.New(400, "MESSAGE_NOT_MODIFIED")
	}
	m.EditDate = c.date()
	m.SetFlags()
	chat.replace(&m)

	pts := chat.box.step(1)
	var update tg.UpdateClass = &tg.UpdateEditMessage{Message: &m, Pts: pts, PtsCount: 1}
	if chat.isChannel() {
		update = &tg.UpdateEditChannelMessage{Message: &m, Pts: pts, PtsCount: 1}
	}
	chat.inbox = append(chat.inbox, &m)
	return c.changedChat(chat, update, pts), nil
}

// same tells whether two versions of a message look the same.
func same(a, b *tg.Message) bool {
	x, errX := encode(a)
	y, errY := encode(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// replace puts another version of a message in its place.
func (c *Chat) replace(m *tg.Message) {
	c.box.messages[m.ID].message = m
	for i := range c.messages {
		if c.messages[i].ID == m.ID {
			c.messages[i] = m
			return
		}
	}
}

// changedChat logs an update that is no new message and answers the call with it.
func (c *call) changedChat(chat *Chat, update tg.UpdateClass, pts int) bin.Encoder {
	c.log(c.session, chat.box, event{pts: pts, chat: chat, update: update})
	users, chats := c.entities(chat)
	return &tg.Updates{Updates: []tg.UpdateClass{update}, Users: users, Chats: chats, Date: c.date()}
}

func (c *call) forwardMessages(r *tg.MessagesForwardMessagesRequest) (bin.Encoder, error) {
	from, err := c.chats.peer(r.FromPeer)
	if err != nil {
		return nil, err
	}
	to, err := c.chats.peer(r.ToPeer)
	if err != nil {
		return nil, err
	}
	switch {
	case len(r.ID) == 0:
		return nil, tgerr.New(400, "MESSAGE_IDS_EMPTY")
	case len(r.ID) > forwardCountMax:
		return nil, tgerr.New(400, "LIMIT_INVALID")
	case len(r.ID) != len(r.RandomID):
		return nil, tgerr.New(400, "RANDOM_ID_INVALID")
	}
	drafts := make([]draft, len(r.ID))
	for i, id := range r.ID {
		s, ok := from.box.messages[id]
		if !ok || s.chat != from {
			return nil, tgerr.New(400, "MESSAGE_ID_INVALID")
		}
		m := s.message
		drafts[i] = draft{
			randomID: r.RandomID[i], text: m.Message, entities: m.Entities, media: m.Media, silent: r.Silent,
		}
		if !r.DropAuthor {
			drafts[i].forward = tg.MessageFwdHeader{FromID: m.FromID, Date: m.Date}
			if m.Post {
				drafts[i].forward = tg.MessageFwdHeader{FromID: m.PeerID, ChannelPost: m.ID, Date: m.Date}
			}
			drafts[i].forward.SetFlags()
		}
	}
	return c.post(to, drafts...)
}

func (c *call) setTyping(r *tg.MessagesSetTypingRequest) (bin.Encoder, error) {
	if _, err := c.chats.peer(r.Peer); err != nil {
		return nil, err
	}
	return &tg.BoolTrue{}, nil
}
