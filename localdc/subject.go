package localdc

import "github.com/gotd/td/tg"

// subject is what a request is about, as far as limits and the record care.
type subject struct {
	chat     int64 // marked id, 0 for none
	messages int   // made or edited
	sends    bool  // it makes new messages
	part     bool  // it carries a part of a file
}

// subject reads it off a request; nil is about nothing.
func (c *Cloud) subject(body any) subject {
	var s subject
	switch r := body.(type) {
	case *tg.MessagesSendMessageRequest, *tg.MessagesSendMediaRequest:
		s.messages, s.sends = 1, true
	case *tg.MessagesSendMultiMediaRequest:
		s.messages, s.sends = max(1, len(r.MultiMedia)), true
	case *tg.MessagesForwardMessagesRequest:
		s.messages, s.sends = max(1, len(r.ID)), true
		s.chat = c.chats.marked(r.ToPeer)
	case *tg.MessagesEditMessageRequest:
		s.messages = 1
	case *tg.UploadSaveFilePartRequest, *tg.UploadSaveBigFilePartRequest, *tg.UploadGetFileRequest:
		s.part = true
	}
	switch r := body.(type) {
	case interface{ GetPeer() tg.InputPeerClass }:
		s.chat = c.chats.marked(r.GetPeer())
	case interface{ GetChannel() tg.InputChannelClass }:
		if channel, ok := r.GetChannel().(*tg.InputChannel); ok {
			s.chat = c.chats.marked(&tg.InputPeerChannel{ChannelID: channel.ChannelID, AccessHash: channel.AccessHash})
		}
	}
	return s
}
