package localdc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/telegram/message/unpack"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func texts(messages []tg.Message) []string {
	out := make([]string, 0, len(messages))
	for _, m := range messages {
		out = append(out, m.Message)
	}
	return out
}

func TestMessagesOfABot(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		api := client.API()
		sender := message.NewSender(api)

		t.Run("send, edit, forward and delete in every kind of chat", func(t *testing.T) {
			archive := cloud.AddChannel("archive")
			for _, chat := range []*localdc.Chat{
				cloud.AddUser("ann").Chat, cloud.AddBasicGroup("small"), cloud.AddGroup("large"), cloud.AddChannel("news"),
			} {
				id, err := unpack.MessageID(sender.To(chat.InputPeer()).Text(ctx, "hello"))
				require.NoError(t, err, chat.Title())
				_, err = sender.To(chat.InputPeer()).Reply(id).Text(ctx, "more")
				require.NoError(t, err, chat.Title())
				require.Equal(t, []string{"hello", "more"}, texts(chat.Messages()))

				_, err = sender.To(chat.InputPeer()).Edit(id).Text(ctx, "hello again")
				require.NoError(t, err, chat.Title())
				_, err = sender.To(chat.InputPeer()).Edit(id).Text(ctx, "hello again")
				requireRPC(t, err, 400, "MESSAGE_NOT_MODIFIED")
				_, err = sender.To(chat.InputPeer()).Edit(id+100).Text(ctx, "hello")
				requireRPC(t, err, 400, "MESSAGE_ID_INVALID")

				_, err = sender.To(archive.InputPeer()).ForwardIDs(chat.InputPeer(), id).Send(ctx)
				require.NoError(t, err, chat.Title())
				forwarded, err := archive.Await(ctx, nil)
				require.NoError(t, err)
				require.Equal(t, "hello again", forwarded.Message)
				require.NotZero(t, forwarded.FwdFrom.Date)

				affected, err := sender.To(chat.InputPeer()).Revoke().Messages(ctx, id, id+100)
				require.NoError(t, err, chat.Title())
				require.Equal(t, 1, affected.PtsCount)
				require.Equal(t, []string{"more"}, texts(chat.Messages()))
			}
		})

		t.Run("a person reads what comes, edits too", func(t *testing.T) {
			ben := cloud.AddUser("ben")
			for _, text := range []string{"one", "two"} {
				_, err := sender.To(ben.InputPeer()).Text(ctx, text)
				require.NoError(t, err)
			}
			m, err := ben.Await(ctx, func(m tg.Message) bool { return m.Message == "two" })
			require.NoError(t, err)
			_, err = sender.To(ben.InputPeer()).Edit(m.ID).Text(ctx, "three")
			require.NoError(t, err)
			m, err = ben.Await(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "three", m.Message)
			require.NotZero(t, m.EditDate)
		})

		t.Run("bad requests", func(t *testing.T) {
			cat := cloud.AddUser("cat")
			require.NoError(t, send(ctx, client, cat.Chat, strings.Repeat("😀", 4096), 1001))
			requireRPC(t, send(ctx, client, cat.Chat, strings.Repeat("x", 4097), 1002), 400, "MESSAGE_TOO_LONG")
			requireRPC(t, send(ctx, client, cat.Chat, strings.Repeat("😀", 4097), 1002), 400, "MESSAGE_TOO_LONG")
			requireRPC(t, send(ctx, client, cat.Chat, "", 1002), 400, "MESSAGE_EMPTY")
			requireRPC(t, send(ctx, client, cat.Chat, "same id", 1001), 500, "RANDOM_ID_DUPLICATE")
			require.Len(t, cat.Messages(), 1)

			for _, peer := range []tg.InputPeerClass{
				&tg.InputPeerEmpty{}, &tg.InputPeerSelf{},
				&tg.InputPeerUser{UserID: 5}, &tg.InputPeerChat{ChatID: 5}, &tg.InputPeerChannel{ChannelID: 5},
				&tg.InputPeerUser{UserID: cat.ID(), AccessHash: cat.AccessHash() + 1}, &tg.InputPeerChat{ChatID: -cat.ID()},
			} {
				_, err := api.MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: peer, Message: "x", RandomID: 1003})
				requireRPC(t, err, 400, "PEER_ID_INVALID")
			}
			_, err := api.ChannelsDeleteMessages(ctx, &tg.ChannelsDeleteMessagesRequest{Channel: &tg.InputChannel{ChannelID: 5}})
			requireRPC(t, err, 400, "CHANNEL_INVALID")

			theirs := cat.Send("mine")
			_, err = sender.To(cat.InputPeer()).Edit(theirs).Text(ctx, "yours")
			requireRPC(t, err, 403, "MESSAGE_AUTHOR_REQUIRED")
			_, err = api.MessagesForwardMessages(ctx, &tg.MessagesForwardMessagesRequest{
				FromPeer: cat.InputPeer(), ToPeer: cat.InputPeer(), ID: []int{theirs}, RandomID: []int64{1004, 1005},
			})
			requireRPC(t, err, 400, "RANDOM_ID_INVALID")
			_, err = api.MessagesForwardMessages(ctx, &tg.MessagesForwardMessagesRequest{
				FromPeer: cat.InputPeer(), ToPeer: cat.InputPeer(), ID: []int{theirs, theirs}, RandomID: []int64{1004, 1004},
			})
			requireRPC(t, err, 500, "RANDOM_ID_DUPLICATE")

			_, err = api.AccountGetPassword(ctx)
			requireRPC(t, err, 400, "METHOD_INVALID")
			calls := cloud.Record().Calls
			require.Equal(t, "account.getPassword", calls[len(calls)-1].Method)
		})

		t.Run("history", func(t *testing.T) {
			dan := cloud.AddUser("dan")
			for _, text := range []string{"1", "2", "3", "4"} {
				_, err := sender.To(dan.InputPeer()).Text(ctx, text)
				require.NoError(t, err)
			}
			page := func(offset int) []tg.MessageClass {
				h, err := api.MessagesGetHistory(ctx, &tg.MessagesGetHistoryRequest{Peer: dan.InputPeer(), OffsetID: offset, Limit: 3})
				require.NoError(t, err)
				m, ok := h.AsModified()
				require.True(t, ok)
				return m.GetMessages()
			}
			first := page(0)
			require.Len(t, first, 3)
			require.Equal(t, "4", first[0].(*tg.Message).Message)
			second := page(first[2].GetID())
			require.Len(t, second, 1)
			require.Equal(t, "1", second[0].(*tg.Message).Message)

			got, err := api.MessagesGetMessages(ctx, []tg.InputMessageClass{
				&tg.InputMessageID{ID: first[0].GetID()}, &tg.InputMessageID{ID: 1 << 20},
			})
			require.NoError(t, err)
			m, _ := got.AsModified()
			require.IsType(t, &tg.Message{}, m.GetMessages()[0])
			require.IsType(t, &tg.MessageEmpty{}, m.GetMessages()[1])
		})

		t.Run("pins, bans, names, typing, commands", func(t *testing.T) {
			eve := cloud.AddUser("Eve")
			team := cloud.AddGroup("team")
			id, err := eve.SendTo(team, "hi all")
			require.NoError(t, err)
			_, err = api.MessagesUpdatePinnedMessage(ctx, &tg.MessagesUpdatePinnedMessageRequest{Peer: team.InputPeer(), ID: id})
			require.NoError(t, err)
			require.Equal(t, []int{id}, team.Pinned())
			_, err = api.MessagesUpdatePinnedMessage(ctx, &tg.MessagesUpdatePinnedMessageRequest{Peer: team.InputPeer(), ID: id, Unpin: true})
			require.NoError(t, err)
			require.Empty(t, team.Pinned())

			ban := &tg.ChannelsEditBannedRequest{
				Channel: team.InputChannel(), Participant: eve.InputPeer(), BannedRights: tg.ChatBannedRights{SendMessages: true},
			}
			_, err = api.ChannelsEditBanned(ctx, ban)
			require.NoError(t, err)
			require.True(t, team.Banned(eve))
			_, err = eve.SendTo(team, "me again")
			require.ErrorContains(t, err, `"Eve" is banned in "team"`)
			_, err = eve.SendTo(cloud.AddUser("Eva").Chat, "psst")
			require.ErrorContains(t, err, "want a group or a channel")
			ban.BannedRights = tg.ChatBannedRights{}
			_, err = api.ChannelsEditBanned(ctx, ban)
			require.NoError(t, err)
			require.False(t, team.Banned(eve))

			found, err := api.ContactsResolveUsername(ctx, &tg.ContactsResolveUsernameRequest{Username: "eve"})
			require.NoError(t, err)
			require.Equal(t, &tg.PeerUser{UserID: eve.ID()}, found.Peer)
			_, err = api.ContactsResolveUsername(ctx, &tg.ContactsResolveUsernameRequest{Username: "nobody"})
			requireRPC(t, err, 400, "USERNAME_NOT_OCCUPIED")
			_, err = api.ContactsResolveUsername(ctx, &tg.ContactsResolveUsernameRequest{Username: "no body"})
			requireRPC(t, err, 400, "USERNAME_INVALID")
			_, err = sender.Resolve("@team").Text(ctx, "by name")
			require.NoError(t, err)

			require.NoError(t, sender.To(eve.InputPeer()).TypingAction().Typing(ctx))
			ok, err := api.BotsSetBotCommands(ctx, &tg.BotsSetBotCommandsRequest{
				Scope: &tg.BotCommandScopeDefault{}, Commands: []tg.BotCommand{{Command: "start", Description: "begin"}},
			})
			require.NoError(t, err)
			require.True(t, ok)
			commands, err := api.BotsGetBotCommands(ctx, &tg.BotsGetBotCommandsRequest{Scope: &tg.BotCommandScopeDefault{}})
			require.NoError(t, err)
			require.Equal(t, "start", commands[0].Command)

			users, err := api.UsersGetUsers(ctx, []tg.InputUserClass{
				&tg.InputUserSelf{}, eve.InputUser(), &tg.InputUser{UserID: 7},
			})
			require.NoError(t, err)
			require.Len(t, users, 2)
			full, err := api.UsersGetFullUser(ctx, &tg.InputUser{UserID: eve.ID()})
			require.NoError(t, err)
			require.Equal(t, eve.ID(), full.FullUser.ID)
			channels, err := api.ChannelsGetChannels(ctx, []tg.InputChannelClass{team.InputChannel()})
			require.NoError(t, err)
			require.Len(t, channels.GetChats(), 1)
		})

		t.Run("differences", func(t *testing.T) {
			alice, team := cloud.AddUser("alice"), cloud.AddGroup("club")
			before, err := api.UpdatesGetState(ctx)
			require.NoError(t, err)
			require.Positive(t, before.Pts)
			diff, err := api.UpdatesGetDifference(ctx, &tg.UpdatesGetDifferenceRequest{Pts: before.Pts, Date: before.Date})
			require.NoError(t, err)
			require.IsType(t, &tg.UpdatesDifferenceEmpty{}, diff)

			gone := alice.Send("gone")
			kept := alice.Send("kept")
			require.NoError(t, send(ctx, client, alice.Chat, "draft", 2001))
			_, err = sender.To(alice.InputPeer()).Edit(kept+1).Text(ctx, "final")
			require.NoError(t, err)
			_, err = sender.Delete().Messages(ctx, gone)
			require.NoError(t, err)

			diff, err = api.UpdatesGetDifference(ctx, &tg.UpdatesGetDifferenceRequest{Pts: before.Pts, Date: before.Date})
			require.NoError(t, err)
			d := diff.(*tg.UpdatesDifference)
			require.Equal(t, before.Pts+5, d.State.Pts)
			require.Len(t, d.NewMessages, 2)
			require.Equal(t, "kept", d.NewMessages[0].(*tg.Message).Message)
			require.Equal(t, "final", d.NewMessages[1].(*tg.Message).Message)
			require.Len(t, d.OtherUpdates, 2)
			require.Len(t, d.Users, 2, "the bot and alice")

			_, err = alice.SendTo(team, "in the group")
			require.NoError(t, err)
			channel, err := api.UpdatesGetChannelDifference(ctx, &tg.UpdatesGetChannelDifferenceRequest{
				Channel: team.InputChannel(), Filter: &tg.ChannelMessagesFilterEmpty{}, Pts: 1, Limit: 100,
			})
			require.NoError(t, err)
			news := channel.(*tg.UpdatesChannelDifference)
			require.Len(t, news.NewMessages, 1)
			channel, err = api.UpdatesGetChannelDifference(ctx, &tg.UpdatesGetChannelDifferenceRequest{
				Channel: team.InputChannel(), Filter: &tg.ChannelMessagesFilterEmpty{}, Pts: news.Pts, Limit: 100,
			})
			require.NoError(t, err)
			require.IsType(t, &tg.UpdatesChannelDifferenceEmpty{}, channel)
			got, err := api.ChannelsGetMessages(ctx, &tg.ChannelsGetMessagesRequest{
				Channel: team.InputChannel(), ID: []tg.InputMessageClass{&tg.InputMessageID{ID: 1}, &tg.InputMessagePinned{}},
			})
			require.NoError(t, err)
			page := got.(*tg.MessagesChannelMessages).Messages
			require.Equal(t, "in the group", page[0].(*tg.Message).Message)
			require.IsType(t, &tg.MessageEmpty{}, page[1])
			_, err = api.UpdatesGetDifference(ctx, &tg.UpdatesGetDifferenceRequest{Pts: 1 << 20})
			requireRPC(t, err, 400, "PERSISTENT_TIMESTAMP_INVALID")
		})
	})
}
