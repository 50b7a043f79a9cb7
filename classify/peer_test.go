package classify

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/constant"
	"github.com/gotd/td/tg"
)

func TestPeerForms(t *testing.T) {
	ask := func(p tg.InputPeerClass) Peer { return PeerOf(&tg.MessagesSendMessageRequest{Peer: p}) }
	seen := &tg.InputPeerChat{ChatID: 1}
	for want, p := range map[Peer]tg.InputPeerClass{
		42:             &tg.InputPeerUser{UserID: 42},
		43:             &tg.InputPeerUserFromMessage{Peer: seen, UserID: 43},
		-44:            &tg.InputPeerChat{ChatID: 44},
		-1000000000045: &tg.InputPeerChannel{ChannelID: 45},
		-1000000000046: &tg.InputPeerChannelFromMessage{Peer: seen, ChannelID: 46},
		-1001234567890: &tg.InputPeerChannel{ChannelID: 1234567890},
		Self:           &tg.InputPeerSelf{},
	} {
		require.Equal(t, want, ask(p))
	}
	for _, p := range []tg.InputPeerClass{
		nil, &tg.InputPeerEmpty{}, (*tg.InputPeerUser)(nil), (*tg.InputPeerChannel)(nil),
		&tg.InputPeerChannel{}, &tg.InputPeerChat{}, &tg.InputPeerUser{},
	} {
		require.Zero(t, ask(p))
	}

	channel := func(c tg.InputChannelClass) Peer { return PeerOf(&tg.ChannelsEditTitleRequest{Channel: c}) }
	require.Equal(t, Peer(-1000000000045), channel(&tg.InputChannel{ChannelID: 45}))
	require.Equal(t, Peer(-1000000000046), channel(&tg.InputChannelFromMessage{Peer: seen, ChannelID: 46}))
	require.Zero(t, channel(&tg.InputChannelEmpty{}))
	require.Zero(t, channel(nil))

	user := func(u tg.InputUserClass) Peer { return PeerOf(&tg.MessagesRequestEncryptionRequest{UserID: u}) }
	require.Equal(t, Peer(47), user(&tg.InputUser{UserID: 47}))
	require.Equal(t, Peer(48), user(&tg.InputUserFromMessage{Peer: seen, UserID: 48}))
	require.Equal(t, Self, user(&tg.InputUserSelf{}))
	require.Zero(t, user(&tg.InputUserEmpty{}))
	require.Zero(t, user(nil))

	pin := func(p tg.InputDialogPeerClass) Peer { return PeerOf(&tg.MessagesToggleDialogPinRequest{Peer: p}) }
	require.Equal(t, Peer(-44), pin(&tg.InputDialogPeer{Peer: &tg.InputPeerChat{ChatID: 44}}))
	require.Zero(t, pin(&tg.InputDialogPeerFolder{FolderID: 1}))
}

func TestPeerIsTDLibs(t *testing.T) {
	for _, id := range []int64{1, 777000, 1234567890, constant.MinMTProtoMonoforumID} {
		var td constant.TDLibPeerID
		td.Channel(id)
		require.Equal(t, Peer(td), channelPeer(id))
		require.True(t, channelPeer(id).IsChannel())
		require.False(t, channelPeer(id).IsGroup() || channelPeer(id).IsUser())
	}
	require.True(t, groupPeer(7).IsGroup())
	require.False(t, groupPeer(7).IsChannel() || groupPeer(7).IsUser())
	require.True(t, userPeer(7).IsUser())
	require.True(t, Self.IsUser())
	require.False(t, Self.IsGroup() || Self.IsChannel())
	require.False(t, Peer(0).IsUser() || Peer(0).IsGroup() || Peer(0).IsChannel())
	require.Equal(t, "none", Peer(0).String())
	require.Equal(t, "self", Self.String())
	require.Equal(t, "-1000000000045", channelPeer(45).String())
}

func TestPeerIsTheChatActedUpon(t *testing.T) {
	user := &tg.InputPeerUser{UserID: 1}
	channel := &tg.InputChannel{ChannelID: 2}
	for name, c := range map[string]struct {
		req  bin.Encoder
		want Peer
	}{
		"forward: the target": {&tg.MessagesForwardMessagesRequest{FromPeer: user, ToPeer: &tg.InputPeerChat{ChatID: 3}}, -3},
		"send as":             {&tg.MessagesSendMessageRequest{Peer: user, SendAs: &tg.InputPeerChannel{ChannelID: 2}}, 1},
		"album":               {&tg.MessagesSendMultiMediaRequest{Peer: user}, 1},
		"invite":              {&tg.ChannelsInviteToChannelRequest{Channel: channel, Users: []tg.InputUserClass{&tg.InputUser{UserID: 9}}}, -1000000000002},
		"ban":                 {&tg.ChannelsEditBannedRequest{Channel: channel, Participant: user}, -1000000000002},
		"add to a group":      {&tg.MessagesAddChatUserRequest{ChatID: 3, UserID: &tg.InputUser{UserID: 9}}, -3},
		"difference":          {&tg.UpdatesGetChannelDifferenceRequest{Channel: channel}, -1000000000002},
		"direct messages":     {&tg.MessagesGetSavedHistoryRequest{ParentPeer: &tg.InputPeerChannel{ChannelID: 2}, Peer: user}, -1000000000002},
		"saved messages":      {&tg.MessagesGetSavedHistoryRequest{Peer: user}, 1},
		"community":           {&tg.CommunitiesTogglePeerLinkRequest{Community: channel, Peer: user}, -1000000000002},
		"start":               {&tg.MessagesStartBotRequest{Bot: &tg.InputUser{UserID: 9}, Peer: &tg.InputPeerEmpty{}}, 9},
		"start in a group":    {&tg.MessagesStartBotRequest{Bot: &tg.InputUser{UserID: 9}, Peer: &tg.InputPeerChat{ChatID: 3}}, -3},
		"call":                {&tg.PhoneRequestCallRequest{UserID: &tg.InputUser{UserID: 9}}, 9},
		"discussion group":    {&tg.ChannelsSetDiscussionGroupRequest{Broadcast: channel, Group: &tg.InputChannel{ChannelID: 4}}, -1000000000002},
		"unlink":              {&tg.ChannelsSetDiscussionGroupRequest{Broadcast: &tg.InputChannelEmpty{}, Group: &tg.InputChannel{ChannelID: 4}}, -1000000000004},

		"list of chats":     {&tg.MessagesGetDialogsRequest{OffsetPeer: user}, 0},
		"look-up":           {&tg.UsersGetFullUserRequest{ID: &tg.InputUser{UserID: 9}}, 0},
		"profile":           {&tg.AccountUpdatePersonalChannelRequest{Channel: channel}, 0},
		"secret chat":       {&tg.MessagesDiscardEncryptionRequest{ChatID: 3}, 0},
		"inline message":    {&tg.MessagesEditInlineBotMessageRequest{}, 0},
		"no such request":   {nil, 0},
		"nil":               {(*tg.MessagesSendMessageRequest)(nil), 0},
		"nil, by its field": {(*tg.MessagesTranslateTextRequest)(nil), 0},
	} {
		require.Equal(t, c.want, PeerOf(c.req), name)
	}
}

// In every function of the layer that has such a field, the field is found, be
// it optional or not. A function whose peer is missed shows here when the layer
// changes.
func TestPeerOfEveryFunction(t *testing.T) {
	fields := []string{"ToPeer", "ParentPeer", "Community", "Peer", "Channel", "Broadcast", "ChatID"} // the wider chat first
	none := map[string]bool{"account.updatePersonalChannel": true}
	all := functions()
	found := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		req := all[name]
		want := Peer(0)
		for i, field := range fields {
			f := reflect.ValueOf(req).Elem().FieldByName(field)
			if !f.IsValid() {
				continue
			}
			id := int64(100 + i)
			peer := channelPeer(id)
			var value any
			switch f.Interface(); f.Type() {
			case reflect.TypeFor[tg.InputPeerClass]():
				value = &tg.InputPeerChannel{ChannelID: id}
			case reflect.TypeFor[tg.InputDialogPeerClass]():
				value = &tg.InputDialogPeer{Peer: &tg.InputPeerChannel{ChannelID: id}}
			case reflect.TypeFor[tg.InputChannelClass]():
				value = &tg.InputChannel{ChannelID: id}
			case reflect.TypeFor[int64]():
				value, peer = id, groupPeer(id)
			default: // a call, a secret chat, settings of notifications
				continue
			}
			f.Set(reflect.ValueOf(value))
			if want == 0 && !none[name] {
				want = peer
			}
		}
		if want != 0 {
			found++
		}
		require.Equal(t, want, PeerOf(req), name)
		// A nil request of any function is no reason to panic.
		require.Zero(t, PeerOf(reflect.Zero(reflect.TypeOf(req)).Interface().(bin.Encoder)), name)
	}
	require.Greater(t, found, 250)
}
