package flood

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gotd/td/proto/codec"
	"github.com/gotd/td/tgerr"
)

const (
	// MinWait is the shortest wait that is reported. A shorter one, zero
	// included, counts as this much.
	MinWait = time.Second
	// MaxWait is the longest wait that is reported. The number of a message may
	// have any length; what exceeds two weeks is cut to two weeks, the bound that
	// the official library sets as well.
	MaxWait = 14 * 24 * time.Hour
)

// lastDate is the end of year 9999: dates beyond it cannot be marshalled.
const lastDate = 253402300799

// Kind says which of Telegram's refusals a [Notice] is about.
type Kind uint8

// The kinds. The first six are waits that a client may sit out on its own, see
// [Notice.Waitable]; the others are for the caller to know.
const (
	FloodWait     Kind = iota + 1 // FLOOD_WAIT_X: too many calls of a method, in a chat or in the account
	PremiumWait                   // FLOOD_PREMIUM_WAIT_X: file parts, faster for premium accounts
	SlowMode                      // SLOWMODE_WAIT_X: the chat allows a message every so often
	TestPhone                     // FLOOD_TEST_PHONE_WAIT_X: a test phone number is used too often
	SkipFailed                    // FLOOD_SKIP_FAILED_WAIT: the call is to be repeated a little later
	Busy                          // WORKER_BUSY_TOO_LONG_RETRY: the server is to be asked a little later
	ConfirmWait                   // 2FA_CONFIRM_WAIT_X: deletion of an account is pending
	TakeoutDelay                  // TAKEOUT_INIT_DELAY_X: the export of data has to be confirmed or waited for
	WaitOrStars                   // FLOOD_WAIT_X_OR_STARS_Y: wait, or pay
	StoryLimit                    // STORY_SEND_FLOOD_WEEKLY_X and _MONTHLY_X: no more stories until a date
	PremiumActive                 // PREMIUM_SUB_ACTIVE_UNTIL_X: a subscription runs until a date
	Frozen                        // FROZEN_METHOD_INVALID: the account is frozen
	PeerFlood                     // PEER_FLOOD: the account is limited for spam
	PhoneFlood                    // PHONE_NUMBER_FLOOD and PHONE_PASSWORD_FLOOD: too many logins
	APIIDFlood                    // API_ID_PUBLISHED_FLOOD: the API id is public and therefore refused
	ChatImport                    // PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_XMIN: another import is running
	Transport                     // transport error -429: too many connections
)

// String returns a short name in snake case, fit for the label of a metric. There
// are as many as there are kinds.
func (k Kind) String() string {
	switch k {
	case FloodWait:
		return "flood_wait"
	case PremiumWait:
		return "premium_wait"
	case SlowMode:
		return "slow_mode"
	case TestPhone:
		return "test_phone"
	case SkipFailed:
		return "skip_failed"
	case Busy:
		return "busy"
	case ConfirmWait:
		return "confirm_wait"
	case TakeoutDelay:
		return "takeout_delay"
	case WaitOrStars:
		return "wait_or_stars"
	case StoryLimit:
		return "story_limit"
	case PremiumActive:
		return "premium_active"
	case Frozen:
		return "frozen"
	case PeerFlood:
		return "peer_flood"
	case PhoneFlood:
		return "phone_flood"
	case APIIDFlood:
		return "api_id_flood"
	case ChatImport:
		return "chat_import"
	case Transport:
		return "transport"
	default:
		return "unknown"
	}
}

// Notice is one refusal of Telegram's, read.
type Notice struct {
	Kind    Kind
	Code    int           // the error code as it came; -429 for [Transport]
	Message string        // as the server said it
	Wait    time.Duration // what the server ordered, MinWait to MaxWait; 0 when waiting is not what is asked
	Until   time.Time     // for messages that carry a date, else zero
	Stars   int64         // the price in [WaitOrStars]
	// Unnumbered marks a wait without a number, or with the number 0. It counts
	// as MinWait, and grows when it repeats.
	Unnumbered bool
}

// Waitable reports whether the client may sit the wait out and repeat the call
// without asking anybody: the kinds [FloodWait] to [Busy].
func (n Notice) Waitable() bool { return n.Kind >= FloodWait && n.Kind <= Busy }

// Parse reads the code and the message of an RPC error. The whole message has to
// match and so has the code, with one exception: FLOOD_WAIT and
// FLOOD_PREMIUM_WAIT count with any code, because gotd's own helpers look only at
// their name, and an error that is missed here would be slept out there, without
// bound.
//
// Numbers are ASCII digits, of any length. A number too large to hold is a long
// wait, not an unknown error. Parse does not allocate.
func Parse(code int, message string) (Notice, bool) {
	n := Notice{Code: code, Message: message}
	return n, n.read()
}

// read fills the notice from its code and its message.
func (n *Notice) read() bool {
	// Each case that holds returns: what comes after it need not think of it.
	switch code, msg := n.Code, n.Message; {
	case msg == "FLOOD_WAIT":
		return n.seconds(FloodWait, "0")
	case msg == "FLOOD_PREMIUM_WAIT":
		return n.seconds(PremiumWait, "0")
	case strings.HasPrefix(msg, "FLOOD_WAIT_"):
		wait, stars, priced := strings.Cut(msg[len("FLOOD_WAIT_"):], "_OR_STARS_")
		if !priced {
			return n.seconds(FloodWait, wait)
		}
		price, ok := number(stars)
		n.Stars = price
		return ok && code == 420 && n.seconds(WaitOrStars, wait)
	case strings.HasPrefix(msg, "FLOOD_PREMIUM_WAIT_"):
		return n.seconds(PremiumWait, msg[len("FLOOD_PREMIUM_WAIT_"):])
	case code == 420:
		return n.read420()
	case code == 500 && msg == "WORKER_BUSY_TOO_LONG_RETRY":
		return n.seconds(Busy, "0")
	case code == 400 && strings.HasPrefix(msg, "STORY_SEND_FLOOD_"):
		return n.story()
	case code == 400 && msg == "PEER_FLOOD":
		n.Kind = PeerFlood
	case code == 400 && msg == "PHONE_NUMBER_FLOOD", code == 406 && msg == "PHONE_PASSWORD_FLOOD":
		n.Kind = PhoneFlood
	case code == 400 && msg == "API_ID_PUBLISHED_FLOOD":
		n.Kind = APIIDFlood
	case code == 406 && strings.HasPrefix(msg, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_"):
		minutes, ok := strings.CutSuffix(msg[len("PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_"):], "MIN")
		return ok && n.wait(ChatImport, minutes, time.Minute)
	default:
		return false
	}
	return true
}

func (n *Notice) read420() bool {
	msg := n.Message
	if rest, ok := strings.CutPrefix(msg, "SLOWMODE_WAIT_"); ok {
		return n.seconds(SlowMode, rest)
	}
	if rest, ok := strings.CutPrefix(msg, "FLOOD_TEST_PHONE_WAIT_"); ok {
		return n.seconds(TestPhone, rest)
	}
	if rest, ok := strings.CutPrefix(msg, "2FA_CONFIRM_WAIT_"); ok {
		return n.seconds(ConfirmWait, rest)
	}
	if rest, ok := strings.CutPrefix(msg, "TAKEOUT_INIT_DELAY_"); ok {
		return n.seconds(TakeoutDelay, rest)
	}
	if rest, ok := strings.CutPrefix(msg, "PREMIUM_SUB_ACTIVE_UNTIL_"); ok {
		return n.date(PremiumActive, rest)
	}
	switch msg {
	case "FLOOD_SKIP_FAILED_WAIT":
		return n.seconds(SkipFailed, "0")
	case "FROZEN_METHOD_INVALID":
		n.Kind = Frozen
		return true
	}
	return n.story()
}

func (n *Notice) story() bool {
	if rest, ok := strings.CutPrefix(n.Message, "STORY_SEND_FLOOD_WEEKLY_"); ok {
		return n.date(StoryLimit, rest)
	}
	if rest, ok := strings.CutPrefix(n.Message, "STORY_SEND_FLOOD_MONTHLY_"); ok {
		return n.date(StoryLimit, rest)
	}
	return false
}

func (n *Notice) seconds(kind Kind, digits string) bool { return n.wait(kind, digits, time.Second) }

func (n *Notice) wait(kind Kind, digits string, unit time.Duration) bool {
	x, ok := number(digits)
	if !ok {
		return false
	}
	n.Kind = kind
	n.Unnumbered = x == 0 && n.Waitable()
	n.Wait = max(MinWait, time.Duration(min(x, int64(MaxWait/unit)))*unit)
	return true
}

func (n *Notice) date(kind Kind, digits string) bool {
	x, ok := number(digits)
	if !ok {
		return false
	}
	n.Kind, n.Until = kind, time.Unix(min(x, lastDate), 0)
	return true
}

// number reads ASCII digits; what does not fit an int64 is the largest one.
func number(digits string) (int64, bool) {
	if digits == "" {
		return 0, false
	}
	var x int64
	for i := range len(digits) {
		d := int64(digits[i]) - '0'
		if d < 0 || d > 9 {
			return 0, false
		}
		if x > (math.MaxInt64-d)/10 {
			x = math.MaxInt64 // and go on: what follows has to be digits too
			continue
		}
		x = x*10 + d
	}
	return x, true
}

// FromError reads the first *tgerr.Error in err's chain, or gotd's transport
// error -429. It goes by the error's code and message, not by the argument that
// gotd has cut out of it: that is the last number of the message and is lost when
// it overflows. An error built by hand from type and argument alone is read as
// the message that these two make.
//
// A [*WaitError] never matches: it has been dealt with.
func FromError(err error) (Notice, bool) {
	if e, ok := errors.AsType[*tgerr.Error](err); ok {
		msg := e.Message
		if msg == "" {
			msg = e.Type
			if e.Argument != 0 {
				msg += "_" + strconv.Itoa(e.Argument)
			}
		}
		return Parse(e.Code, msg)
	}
	if e, ok := errors.AsType[*codec.ProtocolErr](err); ok && e.Code == codec.CodeTransportFlood {
		return Notice{Kind: Transport, Code: -codec.CodeTransportFlood, Message: e.Error()}, true
	}
	return Notice{}, false
}
