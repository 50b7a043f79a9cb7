package dispatch

import (
	"slices"

	"github.com/gotd/td/tg"
)

// chat is what updates are kept in order for. The zero chat is for updates of none.
type chat struct {
	kind byte
	id   int64
}

const (
	user    = 'u'
	group   = 'g'
	channel = 'c'
)

func chatOfPeer(p tg.PeerClass) chat {
	switch p := p.(type) {
	case *tg.PeerUser:
		return chat{user, p.UserID}
	case *tg.PeerChat:
		return chat{group, p.ChatID}
	case *tg.PeerChannel:
		return chat{channel, p.ChannelID}
	}
	return chat{}
}

// chatOf returns the chat that an update belongs to. It goes by the fields that updates
// have in common, so it needs no list of them.
func chatOf(u tg.UpdateClass) chat {
	if u, ok := u.(interface{ GetMessage() tg.MessageClass }); ok {
		if m, ok := u.GetMessage().(tg.NotEmptyMessage); ok {
			return chatOfPeer(m.GetPeerID())
		}
		return chat{}
	}
	if u, ok := u.(interface{ GetPeer() tg.PeerClass }); ok {
		return chatOfPeer(u.GetPeer())
	}
	if u, ok := u.(interface{ GetChannelID() int64 }); ok {
		return chat{channel, u.GetChannelID()}
	}
	if u, ok := u.(interface{ GetChatID() int64 }); ok {
		return chat{group, u.GetChatID()}
	}
	if u, ok := u.(interface{ GetUserID() int64 }); ok {
		return chat{user, u.GetUserID()}
	}
	return chat{}
}

// ptsOf returns an update's place in the sequence of its chat, or 0.
func ptsOf(u tg.UpdateClass) int {
	if pts, _, ok := tg.IsPtsUpdate(u); ok {
		return pts
	}
	if _, pts, _, ok, err := tg.IsChannelPtsUpdate(u); ok && err == nil {
		return pts
	}
	return 0
}

// list returns the updates of a packet.
func list(u tg.UpdatesClass) []tg.UpdateClass {
	switch u := u.(type) {
	case *tg.Updates:
		return u.Updates
	case *tg.UpdatesCombined:
		return u.Updates
	case *tg.UpdateShort:
		return []tg.UpdateClass{u.Update}
	}
	return nil
}

// part is what a packet has for one chat.
type part struct {
	chat    chat
	pts     int
	updates tg.UpdatesClass
}

// split returns a packet's parts, one a chat, in the order of their first updates.
func split(u tg.UpdatesClass) []part {
	var (
		parts  []part
		chats  = map[chat][]tg.UpdateClass{}
		blocks []chat
	)
	for _, one := range list(u) {
		c := chatOf(one)
		if chats[c] == nil {
			blocks = append(blocks, c)
		}
		chats[c] = append(chats[c], one)
	}
	switch len(blocks) {
	case 0:
		return []part{{updates: u}}
	case 1:
		return []part{{blocks[0], ptsOf(chats[blocks[0]][0]), u}}
	}
	for n, c := range blocks {
		// The first part alone keeps the packet's seq: counted twice it would be a repeat.
		parts = append(parts, part{c, ptsOf(chats[c][0]), withUpdates(u, chats[c], n == 0)})
	}
	return parts
}

// withUpdates returns a copy of a packet with other updates.
func withUpdates(u tg.UpdatesClass, list []tg.UpdateClass, seq bool) tg.UpdatesClass {
	switch u := u.(type) {
	case *tg.Updates:
		out := *u
		if out.Updates = list; !seq {
			out.Seq = 0
		}
		return &out
	case *tg.UpdatesCombined:
		out := *u
		if out.Updates = list; !seq {
			out.Seq, out.SeqStart = 0, 0
		}
		return &out
	}
	return u
}

// copied returns a packet whose list of updates is its own.
func copied(u tg.UpdatesClass) tg.UpdatesClass { return withUpdates(u, slices.Clone(list(u)), true) }
