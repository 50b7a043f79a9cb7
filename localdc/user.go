package localdc

import (
	"context"
	"fmt"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// snapshot copies a message to the last pointer, so that its owner may read it
// without a lock.
func snapshot(m *tg.Message) tg.Message {
	var out tg.Message
	raw, err := encode(m)
	if err != nil {
		return *m
	}
	if err := out.Decode(&bin.Buffer{Buf: raw}); err != nil {
		return *m
	}
	return out
}

// Messages returns what stands in the chat, by anyone, oldest first: edited as
// it was edited, without what was deleted.
func (c *Chat) Messages() []tg.Message {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	out := make([]tg.Message, 0, len(c.messages))
	for _, m := range c.messages {
		out = append(out, snapshot(m))
	}
	return out
}

// Pinned returns the ids of the pinned messages, the one pinned last at the end.
func (c *Chat) Pinned() []int {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	return append([]int(nil), c.pinned...)
}

// Banned tells whether the bot banned a user here.
func (c *Chat) Banned(u *User) bool {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	_, ok := c.banned[u.id]
	return ok
}

// Await reads on in the chat, as a person would: it returns the next message
// that the bot sent, or edited (EditDate is not 0 then), and that match accepts;
// a nil match accepts any. What it passes over counts as read. It blocks until
// there is one, ctx is done (the error wraps ctx's) or the Cloud is closed
// ([ErrClosed]).
func (c *Chat) Await(ctx context.Context, match func(tg.Message) bool) (tg.Message, error) {
	for {
		m, ok, changed := c.read()
		if ok && (match == nil || match(m)) {
			return m, nil
		}
		if ok {
			continue
		}
		if err := c.cloud.wait(ctx, changed); err != nil {
			return tg.Message{}, fmt.Errorf("localdc: await a message in %q: %w", c.title, err)
		}
	}
}

// read takes the next message nobody read yet, or tells when to look again.
func (c *Chat) read() (tg.Message, bool, <-chan struct{}) {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	if len(c.inbox) == 0 {
		return tg.Message{}, false, c.cloud.changed
	}
	m := snapshot(c.inbox[0])
	c.inbox = c.inbox[1:]
	return m, true, nil
}

// Send writes to the bot in the private chat and returns the message's id. It
// does not block: the bot gets the update if it is connected, and else by
// updates.getDifference.
func (u *User) Send(text string) int {
	u.cloud.mu.Lock()
	defer u.cloud.mu.Unlock()
	return u.write(u.Chat, draft{text: text})
}

// SendTo writes in a group, or posts in a channel, and returns the message's
// id. A user whom the bot banned there gets an error, and so does a chat that is
// private.
func (u *User) SendTo(chat *Chat, text string) (int, error) {
	if chat.kind == kindUser {
		return 0, fmt.Errorf("localdc: %q is a private chat: want a group or a channel", chat.title)
	}
	u.cloud.mu.Lock()
	defer u.cloud.mu.Unlock()
	if _, ok := chat.banned[u.id]; ok {
		return 0, fmt.Errorf("localdc: %q is banned in %q", u.title, chat.title)
	}
	return u.write(chat, draft{text: text}), nil
}

// SendFile sends the bot a document that lives in a data centre, 0 for the home
// one, and returns the message's id. A bot that asks another data centre for it
// is answered with FILE_MIGRATE_<dc>. data is not to be changed afterwards.
func (u *User) SendFile(name string, data []byte, dc int) (int, error) {
	if dc == 0 {
		dc = u.cloud.opts.Home
	}
	if !u.cloud.has(dc) {
		return 0, fmt.Errorf("localdc: DC is %d: want one of %v", dc, u.cloud.opts.DCs)
	}
	u.cloud.mu.Lock()
	defer u.cloud.mu.Unlock()
	f := u.cloud.files.add(dc, data)
	document := f.document(u.cloud.date(), "application/octet-stream",
		[]tg.DocumentAttributeClass{&tg.DocumentAttributeFilename{FileName: name}})
	f.media = document
	return u.write(u.Chat, draft{media: &tg.MessageMediaDocument{Document: document}}), nil
}

// write makes a message of the user's. The caller holds Cloud.mu.
func (u *User) write(chat *Chat, d draft) int {
	m := u.Chat.write(chat, d, u.cloud.date())
	u.cloud.arrive(nil, chat, u.Chat, m)
	return m.ID
}

// Press presses a button under a message in the private chat and returns the id
// of the callback query, for [User.Answer]. It does not block. It is an error to
// press under what is not there.
func (u *User) Press(messageID int, data []byte) (int64, error) {
	u.cloud.mu.Lock()
	defer u.cloud.mu.Unlock()
	s, ok := u.box.messages[messageID]
	if !ok || s.chat != u.Chat {
		return 0, fmt.Errorf("localdc: no message %d in %q to press a button under", messageID, u.title)
	}
	id := randomInt64()
	u.cloud.queries[id] = nil
	u.cloud.push(nil, &tg.UpdateBotCallbackQuery{
		QueryID: id, UserID: u.id, Peer: u.peer(), MsgID: messageID, ChatInstance: u.id, Data: data,
	}, u.Chat)
	return id, nil
}

// Answer waits until the bot has answered a callback query and returns the
// text, which may be empty. It blocks like Await.
func (u *User) Answer(ctx context.Context, query int64) (string, error) {
	for {
		u.cloud.mu.Lock()
		answer, changed := u.cloud.queries[query], u.cloud.changed
		u.cloud.mu.Unlock()
		if answer != nil {
			return *answer, nil
		}
		if err := u.cloud.wait(ctx, changed); err != nil {
			return "", fmt.Errorf("localdc: await the answer to a button of %q: %w", u.title, err)
		}
	}
}
