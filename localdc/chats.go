package localdc

import (
	"crypto/rand"
	"encoding/binary"
	"strings"

	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// Ids start where the kinds are easily told apart by eye.
const (
	firstUserID    = 1_000_001
	firstBasicID   = 2_000_001
	firstChannelID = 3_000_001
	// channelMark is what a marked id of a channel starts from: -100…
	channelMark = -1_000_000_000_000
)

type chatKind byte

const (
	kindSelf chatKind = iota
	kindUser
	kindBasicGroup
	kindGroup
	kindChannel
)

// Chat is a chat the bot is in: the private chat with a user, a group or a
// channel.
type Chat struct {
	cloud *Cloud
	kind  chatKind
	bot   bool
	id    int64
	hash  int64
	title string
	name  string // @username, "" for none
	box   *box   // that holds its messages

	// Guarded by Cloud.mu.
	messages []*tg.Message // in order
	inbox    []*tg.Message // what the bot sent or edited and nobody awaited yet
	pinned   []int
	banned   map[int64]tg.ChatBannedRights
}

// User is a scripted user. As a [Chat] it is the private chat with the bot,
// which the user is taken to have started.
type User struct{ *Chat }

// chats knows all chats.
type chats struct {
	self     *Chat
	byID     map[int64]*Chat // by marked id
	byName   map[string]*Chat
	next     map[chatKind]int64
	commands []tg.BotCommand
}

func newChats(selfID int64, bot bool) chats {
	return chats{
		self:   &Chat{kind: kindSelf, bot: bot, id: selfID, hash: randomInt64(), title: "Local bot", name: "local_bot"},
		byID:   map[int64]*Chat{},
		byName: map[string]*Chat{},
		next: map[chatKind]int64{
			kindUser: firstUserID, kindBasicGroup: firstBasicID, kindGroup: firstChannelID,
		},
	}
}

func randomInt64() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                // never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1 // above 0: 0 means "none"
}

// AddUser adds a user of that name. The name is the @username too if it is
// made of letters, digits and underscores and nobody has it yet.
func (c *Cloud) AddUser(name string) *User { return &User{c.add(kindUser, name)} }

// AddGroup adds a supergroup that the bot administers. For its title see AddUser.
func (c *Cloud) AddGroup(title string) *Chat { return c.add(kindGroup, title) }

// AddBasicGroup adds a group of the small kind, which has no @username and no
// slow mode, and whose messages are numbered with those of private chats.
func (c *Cloud) AddBasicGroup(title string) *Chat { return c.add(kindBasicGroup, title) }

// AddChannel adds a broadcast channel that the bot administers. For its title
// see AddUser.
func (c *Cloud) AddChannel(title string) *Chat { return c.add(kindChannel, title) }

func (c *Cloud) add(kind chatKind, title string) *Chat {
	c.mu.Lock()
	defer c.mu.Unlock()
	numbers := kind
	if kind == kindChannel {
		numbers = kindGroup // supergroups and channels share their ids
	}
	chat := &Chat{
		cloud: c, kind: kind, id: c.chats.next[numbers], hash: randomInt64(), title: title,
		box: &c.common, banned: map[int64]tg.ChatBannedRights{},
	}
	c.chats.next[numbers]++
	if chat.isChannel() {
		own := newBox()
		chat.box = &own
	}
	if name := strings.ToLower(title); kind != kindBasicGroup && isUsername(name) && c.chats.byName[name] == nil {
		chat.name = title
		c.chats.byName[name] = chat
	}
	c.chats.byID[chat.MarkedID()] = chat
	return chat
}

func isUsername(s string) bool {
	for _, r := range s {
		if r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return s != ""
}

func (c *Chat) isChannel() bool { return c.kind == kindGroup || c.kind == kindChannel }

// ID is the id within its kind, above 0.
func (c *Chat) ID() int64 { return c.id }

// AccessHash is the access hash, 0 for a basic group, which needs none.
func (c *Chat) AccessHash() int64 {
	if c.kind == kindBasicGroup {
		return 0
	}
	return c.hash
}

// MarkedID is the id that tells the kind too, as in the Bot API and in [Call]:
// a user's id, minus a basic group's, -100… for supergroups and channels.
func (c *Chat) MarkedID() int64 { return mark(c.peer()) }

// Title is the name of the user or the title of the chat.
func (c *Chat) Title() string { return c.title }

// InputPeer is the chat as a request names it.
func (c *Chat) InputPeer() tg.InputPeerClass {
	switch c.kind {
	case kindSelf, kindUser:
		return &tg.InputPeerUser{UserID: c.id, AccessHash: c.hash}
	case kindBasicGroup:
		return &tg.InputPeerChat{ChatID: c.id}
	default:
		return &tg.InputPeerChannel{ChannelID: c.id, AccessHash: c.hash}
	}
}

// InputChannel is a supergroup or a channel as the methods of channels.* name
// it, nil for any other chat.
func (c *Chat) InputChannel() *tg.InputChannel {
	if !c.isChannel() {
		return nil
	}
	return &tg.InputChannel{ChannelID: c.id, AccessHash: c.hash}
}

// InputUser is the user as the methods of users.* name it.
func (u *User) InputUser() *tg.InputUser {
	return &tg.InputUser{UserID: u.id, AccessHash: u.hash}
}

func (c *Chat) peer() tg.PeerClass {
	switch c.kind {
	case kindSelf, kindUser:
		return &tg.PeerUser{UserID: c.id}
	case kindBasicGroup:
		return &tg.PeerChat{ChatID: c.id}
	default:
		return &tg.PeerChannel{ChannelID: c.id}
	}
}

func mark(p tg.PeerClass) int64 {
	switch p := p.(type) {
	case *tg.PeerUser:
		return p.UserID
	case *tg.PeerChat:
		return -p.ChatID
	case *tg.PeerChannel:
		return channelMark - p.ChannelID
	default:
		return 0
	}
}

// tg is a user as the bot sees it.
func (c *Chat) tg() *tg.User {
	return &tg.User{
		Self: c.kind == kindSelf, Bot: c.bot,
		ID: c.id, AccessHash: c.hash, FirstName: c.title, Username: c.name,
	}
}

// tgChat is a group or a channel as the bot sees it. The caller holds Cloud.mu.
func (c *Chat) tgChat() tg.ChatClass {
	if c.kind == kindBasicGroup {
		return &tg.Chat{ID: c.id, Title: c.title, Photo: &tg.ChatPhotoEmpty{}, ParticipantsCount: 2}
	}
	return &tg.Channel{
		Broadcast: c.kind == kindChannel, Megagroup: c.kind == kindGroup,
		SlowmodeEnabled: c.cloud.judge.slow[c.MarkedID()] > 0,
		ID:              c.id, AccessHash: c.hash, Title: c.title, Username: c.name, Photo: &tg.ChatPhotoEmpty{},
		AdminRights: tg.ChatAdminRights{
			PostMessages: true, EditMessages: true, DeleteMessages: true, BanUsers: true, PinMessages: true,
		},
	}
}

// entities lists users and chats for an answer or an update that is about
// some chats: the bot and them, each once. The caller holds Cloud.mu.
func (c *Cloud) entities(about ...*Chat) ([]tg.UserClass, []tg.ChatClass) {
	users := []tg.UserClass{c.chats.self.tg()}
	chats := []tg.ChatClass{}
	seen := map[*Chat]bool{c.chats.self: true}
	for _, chat := range about {
		if seen[chat] {
			continue
		}
		seen[chat] = true
		if chat.kind == kindUser {
			users = append(users, chat.tg())
		} else {
			chats = append(chats, chat.tgChat())
		}
	}
	return users, chats
}

// find returns the chat that a request names, nil for none. A bot may leave
// the access hash 0, as it may on Telegram.
func (c *chats) find(p tg.InputPeerClass) *Chat {
	var mark, id, hash int64
	switch p := p.(type) {
	case *tg.InputPeerUser:
		mark, id, hash = p.UserID, p.UserID, p.AccessHash
	case *tg.InputPeerUserFromMessage:
		mark, id = p.UserID, p.UserID
	case *tg.InputPeerChat:
		mark, id = -p.ChatID, p.ChatID
	case *tg.InputPeerChannel:
		mark, id, hash = channelMark-p.ChannelID, p.ChannelID, p.AccessHash
	case *tg.InputPeerChannelFromMessage:
		mark, id = channelMark-p.ChannelID, p.ChannelID
	}
	chat := c.byID[mark]
	// A made-up id, such as a negative one, may have the mark of another kind.
	if chat == nil || chat.id != id || hash != 0 && hash != chat.hash {
		return nil
	}
	return chat
}

func (c *chats) marked(p tg.InputPeerClass) int64 {
	if chat := c.find(p); chat != nil {
		return chat.MarkedID()
	}
	return 0
}

func (c *chats) peer(p tg.InputPeerClass) (*Chat, error) {
	if chat := c.find(p); chat != nil {
		return chat, nil
	}
	return nil, tgerr.New(400, "PEER_ID_INVALID")
}

func (c *chats) channel(p tg.InputChannelClass) (*Chat, error) {
	if in, ok := p.(*tg.InputChannel); ok {
		if chat := c.find(&tg.InputPeerChannel{ChannelID: in.ChannelID, AccessHash: in.AccessHash}); chat != nil {
			return chat, nil
		}
	}
	return nil, tgerr.New(400, "CHANNEL_INVALID")
}

// user returns the user that a request names; the bot itself too.
func (c *chats) user(p tg.InputUserClass) *Chat {
	switch p := p.(type) {
	case *tg.InputUserSelf:
		return c.self
	case *tg.InputUser:
		if p.UserID == c.self.id {
			return c.self
		}
		return c.find(&tg.InputPeerUser{UserID: p.UserID, AccessHash: p.AccessHash})
	default:
		return nil
	}
}
