package localdc

import "github.com/gotd/td/tg"

// subject is what a request is about, as far as limits, scripts and the record
// care.
type subject struct {
	method   string
	dc       int
	kind     Kind
	open     bool  // it works without a login
	chat     int64 // marked id, 0 for none
	messages int   // made or edited
	sends    bool  // it makes new messages
}

// subject reads it off a request; nil is about nothing.
func (c *Cloud) subject(r *request, dc int) subject {
	m := c.methods[r.id]
	s := subject{method: r.name, dc: dc, kind: m.kind, open: m.open}
	switch r := r.body.(type) {
	case *tg.MessagesSendMessageRequest, *tg.MessagesSendMediaRequest:
		s.messages, s.sends = 1, true
	case *tg.MessagesSendMultiMediaRequest:
		s.messages, s.sends = max(1, len(r.MultiMedia)), true
	case *tg.MessagesForwardMessagesRequest:
		s.messages, s.sends = max(1, len(r.ID)), true
		s.chat = c.chats.marked(r.ToPeer)
	case *tg.MessagesEditMessageRequest:
		s.messages = 1
	}
	switch r := r.body.(type) {
	case interface{ GetPeer() tg.InputPeerClass }:
		s.chat = c.chats.marked(r.GetPeer())
	case interface{ GetChannel() tg.InputChannelClass }:
		if channel, ok := r.GetChannel().(*tg.InputChannel); ok {
			s.chat = c.chats.marked(&tg.InputPeerChannel{ChannelID: channel.ChannelID, AccessHash: channel.AccessHash})
		}
	}
	return s
}
