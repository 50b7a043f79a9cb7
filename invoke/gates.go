package invoke

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gotd/td/bin"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/ratelimit"
)

// ChatMode says whether chats have gates of their own.
type ChatMode uint8

const (
	// ChatsOfBots gives chats gates if the account is a bot, which is what
	// Telegram's published figures are about. Whether it is one is learned from the
	// login, or from the first answer that shows the account itself.
	ChatsOfBots ChatMode = iota
	// ChatsAlways gives them gates whoever the account is.
	ChatsAlways
	// ChatsNever gives them none.
	ChatsNever
)

// ChatLimits are the limits of one chat for messages: what is sent, forwarded and
// edited, albums and forwards counted by the message. The changes are to what
// [DefaultChatLimits] returns.
type ChatLimits struct {
	Mode ChatMode
	// Private changes the limit of a chat with one user, such as ratelimit.Rate(0.5).
	Private ratelimit.Change
	// Group changes the limit of a group or channel: ratelimit.To(ratelimit.Window{…}).
	Group ratelimit.Change
}

// DefaultChatLimits returns the limits that each chat starts from: a chat with one user
// takes 1 message a second with a burst of 3 (Telegram says about one a second and lets
// short bursts pass), a group or channel 20 in a sliding minute.
func DefaultChatLimits() (private ratelimit.Limit, group ratelimit.Window) {
	return ratelimit.Limit{Rate: 1, Burst: 3}, ratelimit.Window{Limit: 20, Period: time.Minute}
}

// The names of the keyed gates that a limiter has by itself.
const (
	PrivateGate      = "private"       // one for each chat with a user
	GroupGate        = "group"         // one for each group and channel
	PaidGate         = "paid"          // for broadcasts that pay: 1000 a second, burst 100
	ResolvePhoneGate = "resolve_phone" // for contacts.resolvePhone: 1 in 3 s
)

// paidLimit is Telegram's for messages with allow_paid_floodskip.
var paidLimit = ratelimit.Limit{Rate: 1000, Burst: 100}

// resolvePhoneLimit is what Telegram asks clients to keep to by themselves.
var resolvePhoneLimit = ratelimit.Limit{Rate: 1.0 / 3, Burst: 1}

// KeyedGate is a limit of the program's own: so many calls for each user, command,
// or whatever else a key is made of. It is also how a program keeps a limit that
// Telegram has changed overnight.
type KeyedGate struct {
	// Name tells the gate apart in errors, events and [Limiter.UpdateGates]. No other
	// gate may have it; [ResolvePhoneGate] replaces the limiter's own. At most 256 bytes.
	Name string
	// Rule is a ratelimit.Limit or a ratelimit.Window that is not paused. To pause it, use
	// [Limiter.UpdateGates].
	Rule ratelimit.Rule
	// Key returns the key of a call, "" if the gate does not concern it. It gets the
	// innermost request, which it must not change, runs before anything is taken, on
	// the goroutine of the call, and a panic goes through to there. Keys are hashed:
	// a long one costs no memory.
	Key func(req bin.Encoder, call classify.Call) string
	// MaxWaiters bounds the queue of each of its gates, 0 for no bound. Beyond it
	// calls are refused with ratelimit.ErrQueueFull.
	MaxWaiters int
}

// MaxKeyedGates is how many gates of its own a program can have.
const MaxKeyedGates = 5

// maxGateName is the longest name of a gate, in bytes: a store has it in its keys.
const maxGateName = 256

// maxGates is the most that one call passes: the program's, resolve_phone, its chat's and
// the pace that this has learned, its category's and the global one.
const maxGates = MaxKeyedGates + 5

// keyedGates is a KeyedGate at work.
type keyedGates struct {
	*ratelimit.Gates
	key func(req bin.Encoder, call classify.Call) string
}

func resolvePhone() KeyedGate {
	return KeyedGate{
		Name: ResolvePhoneGate,
		Rule: resolvePhoneLimit,
		Key: func(_ bin.Encoder, call classify.Call) string {
			if call.Method == "contacts.resolvePhone" {
				return "account"
			}
			return ""
		},
	}
}

// addKeyed makes the limiter's own keyed gates and the program's.
func (l *Limiter) addKeyed(opts Options) error {
	var errs []error
	if opts.Chats.Mode > ChatsNever {
		errs = append(errs, fmt.Errorf("chats: mode is %d: want ChatsOfBots, ChatsAlways or ChatsNever", opts.Chats.Mode))
	}
	if len(opts.Gates) > MaxKeyedGates {
		errs = append(errs, fmt.Errorf("gates: there are %d: want at most %d", len(opts.Gates), MaxKeyedGates))
	}
	l.chatMode = opts.Chats.Mode
	add := func(name string, change ratelimit.Change, rule ratelimit.Rule, maxWaiters int) *ratelimit.Gates {
		rule, err := change.Apply(rule)
		if err != nil {
			errs = append(errs, fmt.Errorf("gates: %w", named(name, err)))
			return nil
		}
		gates, err := l.limiter.NewGates(name, rule)
		if err != nil {
			errs = append(errs, fmt.Errorf("gates: %w", err))
			return nil
		}
		gates.SetMaxWaiters(maxWaiters)
		l.byName[name] = gates
		return gates
	}
	private, group := DefaultChatLimits()
	l.private = add(PrivateGate, opts.Chats.Private, private, opts.MaxWaiters)
	l.group = add(GroupGate, opts.Chats.Group, group, opts.MaxWaiters)
	l.paid = add(PaidGate, ratelimit.Change{}, paidLimit, opts.MaxWaiters)
	var err error
	l.paces, err = l.limiter.NewGates(PaceGate, private)
	errs = append(errs, err)

	own := slices.Clone(opts.Gates)
	if !slices.ContainsFunc(own, func(g KeyedGate) bool { return g.Name == ResolvePhoneGate }) {
		own = append(own, resolvePhone())
	}
	names := map[string]bool{PrivateGate: true, GroupGate: true, PaidGate: true, PaceGate: true, FloodGate: true}
	for i, g := range own {
		taken := names[g.Name]
		names[g.Name] = true
		_, notCategory := classify.ParseCategory(g.Name)
		switch {
		case len(g.Name) > maxGateName:
			errs = append(errs, fmt.Errorf("gates[%d]: name has %d bytes: want at most %d", i, len(g.Name), maxGateName))
		case g.Name == "", taken, notCategory == nil:
			errs = append(errs, fmt.Errorf("gates[%d]: name is %q: want one that no other gate has", i, g.Name))
		case g.Key == nil:
			errs = append(errs, fmt.Errorf("gates[%d]: %s has no Key: want a function that returns the key of a call", i, g.Name))
		case g.Rule == nil:
			errs = append(errs, fmt.Errorf("gates[%d]: %s has no Rule: want a ratelimit.Limit or a ratelimit.Window", i, g.Name))
		case g.Rule.Validate() == nil && g.Rule.Paused(): // such as a rate without a burst
			errs = append(errs, fmt.Errorf("gates[%d]: %s has the Rule %s, which lets nothing through: want a rate above 0 and a burst or a limit of 1 or more", i, g.Name, g.Rule))
		case g.MaxWaiters < 0:
			errs = append(errs, fmt.Errorf("gates[%d]: %s.MaxWaiters is %d: want 0 for no bound, or more", i, g.Name, g.MaxWaiters))
		default:
			if gates := add(g.Name, ratelimit.Change{}, g.Rule, g.MaxWaiters); gates != nil {
				l.keyed = append(l.keyed, keyedGates{Gates: gates, key: g.Key})
			}
		}
	}
	return errors.Join(errs...)
}

// GateStats returns the state of the keyed gates, by name. It does not block.
func (l *Limiter) GateStats() map[string]ratelimit.GatesStats {
	stats := make(map[string]ratelimit.GatesStats, len(l.byName))
	for name, gates := range l.byName {
		stats[name] = gates.Stats()
	}
	return stats
}

// What is known of whether the account is a bot.
const (
	botUnknown = iota
	botNo
	botYes
)

// SetBot sets whether the account is a bot, for [ChatsOfBots]. A limiter learns it by
// itself from the answer to a login, from any answer that shows the account itself, and
// from its store, which keeps it.
func (l *Limiter) SetBot(bot bool) {
	if bot {
		l.bot.Store(botYes)
	} else {
		l.bot.Store(botNo)
	}
}

// NeedsSelf reports whether the limits of chats depend on whether the account is a bot, and
// nothing has shown that yet. Until then calls pass no gates of chats. Package client asks
// for the account itself before its first call to a chat; a program that uses the
// middleware alone calls SetBot, or users.getUsers with InputUserSelf.
func (l *Limiter) NeedsSelf() bool { return l.chatMode == ChatsOfBots && l.bot.Load() == botUnknown }

func (l *Limiter) limitsChats() bool {
	return l.chatMode == ChatsAlways || l.chatMode == ChatsOfBots && l.bot.Load() == botYes
}

// chatGates are the gates of chats of the peer's kind.
func (l *Limiter) chatGates(peer classify.Peer) *ratelimit.Gates {
	if peer.IsUser() || peer == classify.Self {
		return l.private
	}
	return l.group
}

// pass is the gates of one call, the narrowest first.
type pass struct {
	gates [maxGates]ratelimit.Gate
	n     int
	// common is how many of them, at the end, a permit pays for.
	common int
	// messages is what the call counts for at the gate of its chat, 0 if it passes none.
	messages int
	pace     ratelimit.Gate // that of its chat, the zero Gate if it has learned none
}

func (p *pass) add(g ratelimit.Gate) {
	p.gates[p.n] = g
	p.n++
}

// all are the gates of a call that pays for itself.
func (p *pass) all() []ratelimit.Gate { return p.gates[:p.n] }

// own are the gates that a call has to pay for even with a permit, shared the others.
func (p *pass) own() []ratelimit.Gate    { return p.gates[:p.n-p.common] }
func (p *pass) shared() []ratelimit.Gate { return p.gates[p.n-p.common : p.n] }

// findGates tells p the gates of a call. The parts of a file after the first ride free:
// the limiter bounds requests, not bytes.
func (l *Limiter) findGates(p *pass, c classify.Call, req bin.Encoder) {
	if c.Part {
		return
	}
	inner := classify.Unwrap(req)
	for _, g := range l.keyed {
		if key := g.key(inner, c); key != "" {
			p.add(g.Key(l.limiter.Key(key)))
		}
	}
	if c.Peer != 0 && (c.Category == classify.Message || c.Category == classify.Media) {
		n, paid := classify.Messages(inner)
		if paid {
			p.add(l.paid.Key(0))
			return
		}
		if n > 0 && l.limitsChats() {
			p.messages = n
			p.add(l.chatGates(c.Peer).Key(uint64(c.Peer)).Times(n))
		}
	}
	p.add(l.gates[c.Category])
	p.add(l.gates[classify.Global])
	p.common = 2
}

// afterPace is how many gates a call to a chat passes after the pace of that.
const afterPace = 3

// pacing brings up to date whether the call passes a pace that its chat has learned. A call
// may wait long, and be sent more than once.
func (l *Limiter) pacing(p *pass, chat classify.Peer) {
	if !l.repaced(p, chat) {
		return
	}
	var rest [afterPace]ratelimit.Gate
	p.n -= copy(rest[:], p.gates[p.n-afterPace:p.n])
	if p.pace != (ratelimit.Gate{}) {
		p.n--
	}
	pace, ok := l.learned.Gate(chat)
	if p.pace = pace; ok {
		p.add(pace.Times(p.messages))
	}
	for _, gate := range rest {
		p.add(gate)
	}
}

// repaced reports whether the pace of the call's chat is another than pacing has found.
func (l *Limiter) repaced(p *pass, chat classify.Peer) bool {
	if p.messages == 0 {
		return false
	}
	pace, _ := l.learned.Gate(chat)
	return pace != p.pace
}
