package classify

import (
	"math"
	"strconv"

	"github.com/gotd/td/constant"
)

// Peer is the id of a chat in the marked form that authors of bots know: a user
// is positive, a basic group negative, a channel or supergroup -100… (that is,
// -1000000000000 minus its id). 0 is no peer.
type Peer int64

// Self is the chat of the account with itself, "Saved Messages". Requests say
// "self" in place of its id. No id is as low as this.
const Self Peer = math.MinInt64

// IsUser reports whether p is the chat with a user or a bot, or Self.
func (p Peer) IsUser() bool { return p == Self || constant.TDLibPeerID(p).IsUser() }

// IsGroup reports whether p is a basic group. A supergroup is a channel.
func (p Peer) IsGroup() bool { return constant.TDLibPeerID(p).IsChat() }

// IsChannel reports whether p is a channel or a supergroup.
func (p Peer) IsChannel() bool { return constant.TDLibPeerID(p).IsChannel() }

// String returns the id in decimal, "self" for Self and "none" for 0.
func (p Peer) String() string {
	switch p {
	case 0:
		return "none"
	case Self:
		return "self"
	}
	return strconv.FormatInt(int64(p), 10)
}

func userPeer(id int64) Peer { return Peer(id) }

func groupPeer(id int64) Peer { return Peer(-id) }

func channelPeer(id int64) Peer {
	if id == 0 {
		return 0
	}
	return Peer(constant.ZeroTDLibChannelID - id)
}
