package classify

import (
	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// PeerOf returns the chat that a request acts on, through wrappers, and 0 if it
// acts on none, or on several. Where a request names more than one chat it is
//
//   - the target of a forward, not its source;
//   - the channel whose direct messages are dealt with, or the community, not the
//     chat within it;
//   - the chat in which something is done to a member, not the member;
//   - the chat with a user if the call writes to that user: a call, a secret chat, /start.
//
// What only looks a user up, or changes the account's own settings for one,
// acts on no chat.
func PeerOf(req bin.Encoder) Peer {
	return peerOf(Unwrap(req))
}

// peerOf goes by the getters that gotd writes for the fields of a request, so
// that it works for the functions of the next layer. They can't be trusted for
// an optional field: its flag is set only when the request is encoded. Those
// are read by themselves.
func peerOf(req bin.Encoder) Peer {
	switch r := req.(type) {
	// Functions that are an exception to the rules below.
	case *tg.AccountUpdatePersonalChannelRequest:
		return 0 // what the account shows of itself; the channel does not notice
	case *tg.MessagesStartBotRequest:
		return firstOf(inputPeer(r.GetPeer()), inputUser(r.GetBot()))
	case *tg.MessagesSendWebViewDataRequest:
		return inputUser(r.GetBot())
	case *tg.MessagesRequestEncryptionRequest:
		return inputUser(r.GetUserID())
	case *tg.PhoneRequestCallRequest:
		return inputUser(r.GetUserID())
	case *tg.PhoneInviteConferenceCallParticipantRequest:
		return inputUser(r.GetUserID())
	case *tg.UsersSuggestBirthdayRequest:
		return inputUser(r.GetID())
	case *tg.UsersSetSecureValueErrorsRequest:
		return inputUser(r.GetID())
	case *tg.BotsSetBotMenuButtonRequest:
		return inputUser(r.GetUserID())
	case *tg.PaymentsTransferStarGiftRequest:
		return inputPeer(r.GetToID())
	case *tg.ChannelsSetDiscussionGroupRequest:
		return firstOf(inputChannel(r.GetBroadcast()), inputChannel(r.GetGroup()))

	// Optional fields.
	case *tg.AccountGetPaidMessagesRevenueRequest:
		return inputPeer(deref(r).ParentPeer)
	case *tg.AccountToggleNoPaidMessagesExceptionRequest:
		return inputPeer(deref(r).ParentPeer)
	case *tg.MessagesGetDialogUnreadMarksRequest:
		return inputPeer(deref(r).ParentPeer)
	case *tg.MessagesGetSavedDialogsRequest:
		return inputPeer(deref(r).ParentPeer)
	case *tg.MessagesGetSavedDialogsByIDRequest:
		return inputPeer(deref(r).ParentPeer)
	case *tg.MessagesGetSavedHistoryRequest:
		return firstOf(inputPeer(deref(r).ParentPeer), inputPeer(r.GetPeer()))
	case *tg.MessagesDeleteSavedHistoryRequest:
		return firstOf(inputPeer(deref(r).ParentPeer), inputPeer(r.GetPeer()))
	case *tg.MessagesMarkDialogUnreadRequest:
		return firstOf(inputPeer(deref(r).ParentPeer), dialogPeer(r.GetPeer()))
	case *tg.AccountSaveAutoSaveSettingsRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesAcceptURLAuthRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesRequestURLAuthRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesGetSavedReactionTagsRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesTranslateTextRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesTranslateRichMessageRequest:
		return inputPeer(deref(r).Peer)
	case *tg.StoriesSearchPostsRequest:
		return inputPeer(deref(r).Peer)
	case *tg.MessagesSearchGlobalRequest:
		return inputChannel(deref(r).Community)
	case *tg.ChannelsGetChannelRecommendationsRequest:
		return inputChannel(deref(r).Channel)

	// Everything else, the wider chat first.
	case interface{ GetToPeer() tg.InputPeerClass }:
		return inputPeer(r.GetToPeer())
	case interface{ GetParentPeer() tg.InputPeerClass }:
		return inputPeer(r.GetParentPeer())
	case interface{ GetCommunity() tg.InputChannelClass }:
		return inputChannel(r.GetCommunity())
	case interface{ GetPeer() tg.InputPeerClass }:
		return inputPeer(r.GetPeer())
	case interface {
		GetPeer() tg.InputDialogPeerClass
	}:
		return dialogPeer(r.GetPeer())
	case interface{ GetChannel() tg.InputChannelClass }:
		return inputChannel(r.GetChannel())
	case interface{ GetChatID() int64 }: // a basic group; a secret chat's is an int
		return groupPeer(r.GetChatID())
	}
	return 0
}

func inputPeer(p tg.InputPeerClass) Peer {
	switch p := p.(type) {
	case *tg.InputPeerUser:
		return userPeer(p.GetUserID())
	case *tg.InputPeerChannel:
		return channelPeer(p.GetChannelID())
	case *tg.InputPeerChat:
		return groupPeer(p.GetChatID())
	case *tg.InputPeerSelf:
		return Self
	case *tg.InputPeerUserFromMessage:
		return userPeer(p.GetUserID())
	case *tg.InputPeerChannelFromMessage:
		return channelPeer(p.GetChannelID())
	}
	return 0 // empty, nil, or of a layer to come
}

func inputUser(u tg.InputUserClass) Peer {
	switch u := u.(type) {
	case *tg.InputUser:
		return userPeer(u.GetUserID())
	case *tg.InputUserFromMessage:
		return userPeer(u.GetUserID())
	case *tg.InputUserSelf:
		return Self
	}
	return 0
}

func inputChannel(c tg.InputChannelClass) Peer {
	switch c := c.(type) {
	case *tg.InputChannel:
		return channelPeer(c.GetChannelID())
	case *tg.InputChannelFromMessage:
		return channelPeer(c.GetChannelID())
	}
	return 0
}

// dialogPeer is the chat of an entry in the list of chats; a folder is none.
func dialogPeer(d tg.InputDialogPeerClass) Peer {
	if d, ok := d.(*tg.InputDialogPeer); ok {
		return inputPeer(d.GetPeer())
	}
	return 0
}

// firstOf returns the first that is a peer.
func firstOf(a, b Peer) Peer {
	if a != 0 {
		return a
	}
	return b
}

// deref returns what p points to, the zero value for nil: a nil request is an
// error that its encoding reports, and no reason to panic here.
func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
