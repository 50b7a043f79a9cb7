package localdc

import (
	"slices"
	"strings"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

func (c *call) getUsers(r *tg.UsersGetUsersRequest) (bin.Encoder, error) {
	out := &tg.UserClassVector{}
	for _, in := range r.ID {
		if u := c.chats.user(in); u != nil {
			out.Elems = append(out.Elems, u.tg())
		}
	}
	return out, nil
}

func (c *call) getFullUser(r *tg.UsersGetFullUserRequest) (bin.Encoder, error) {
	u := c.chats.user(r.ID)
	if u == nil {
		return nil, tgerr.New(400, "USER_ID_INVALID")
	}
	users, _ := c.entities(u)
	return &tg.UsersUserFull{FullUser: tg.UserFull{ID: u.id}, Users: users}, nil
}

func (c *call) resolveUsername(r *tg.ContactsResolveUsernameRequest) (bin.Encoder, error) {
	name := strings.ToLower(strings.TrimPrefix(r.Username, "@"))
	if !isUsername(name) {
		return nil, tgerr.New(400, "USERNAME_INVALID")
	}
	chat := c.chats.byName[name]
	if name == c.chats.self.name {
		chat = c.chats.self
	}
	if chat == nil {
		return nil, tgerr.New(400, "USERNAME_NOT_OCCUPIED")
	}
	users, chats := c.entities(chat)
	return &tg.ContactsResolvedPeer{Peer: chat.peer(), Users: users, Chats: chats}, nil
}

func (c *call) getChannels(r *tg.ChannelsGetChannelsRequest) (bin.Encoder, error) {
	out := &tg.MessagesChats{}
	for _, in := range r.ID {
		chat, err := c.chats.channel(in)
		if err != nil {
			return nil, err
		}
		out.Chats = append(out.Chats, chat.tgChat())
	}
	return out, nil
}

// editBanned bans or unbans a user in a group or channel; see Chat.Banned.
func (c *call) editBanned(r *tg.ChannelsEditBannedRequest) (bin.Encoder, error) {
	chat, err := c.chats.channel(r.Channel)
	if err != nil {
		return nil, err
	}
	user := c.chats.find(r.Participant)
	if user == nil || user.kind != kindUser {
		return nil, tgerr.New(400, "PARTICIPANT_ID_INVALID")
	}
	if r.BannedRights.ViewMessages || r.BannedRights.SendMessages {
		chat.banned[user.id] = r.BannedRights
	} else {
		delete(chat.banned, user.id)
	}
	users, chats := c.entities(chat, user)
	return &tg.Updates{Updates: []tg.UpdateClass{}, Users: users, Chats: chats, Date: c.date()}, nil
}

func (c *call) updatePinnedMessage(r *tg.MessagesUpdatePinnedMessageRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	if s, ok := chat.box.messages[r.ID]; !ok || s.chat != chat {
		return nil, tgerr.New(400, "MESSAGE_ID_INVALID")
	}
	chat.pinned = slices.DeleteFunc(chat.pinned, func(id int) bool { return id == r.ID })
	if !r.Unpin {
		chat.pinned = append(chat.pinned, r.ID)
	}
	pts := chat.box.step(1)
	var update tg.UpdateClass = &tg.UpdatePinnedMessages{
		Pinned: !r.Unpin, Peer: chat.peer(), Messages: []int{r.ID}, Pts: pts, PtsCount: 1,
	}
	if chat.isChannel() {
		update = &tg.UpdatePinnedChannelMessages{
			Pinned: !r.Unpin, ChannelID: chat.id, Messages: []int{r.ID}, Pts: pts, PtsCount: 1,
		}
	}
	return c.changedChat(chat, update, pts), nil
}

func (c *call) setBotCallbackAnswer(r *tg.MessagesSetBotCallbackAnswerRequest) (bin.Encoder, error) {
	if answer, ok := c.queries[r.QueryID]; !ok || answer != nil {
		return nil, tgerr.New(400, "QUERY_ID_INVALID")
	}
	c.queries[r.QueryID] = &r.Message
	return &tg.BoolTrue{}, nil
}

func (c *call) setBotCommands(r *tg.BotsSetBotCommandsRequest) (bin.Encoder, error) {
	c.chats.commands = slices.Clone(r.Commands)
	return &tg.BoolTrue{}, nil
}

func (c *call) getBotCommands(*tg.BotsGetBotCommandsRequest) (bin.Encoder, error) {
	return &tg.BotCommandVector{Elems: slices.Clone(c.chats.commands)}, nil
}
