package localdc

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Rate is a token bucket: Burst calls at once, then PerSecond of them in a
// second. The zero Rate limits nothing.
//
// It is reckoned in whole nanoseconds, with the time of one token rounded down:
// a caller that keeps exactly to the rate is never refused.
type Rate struct {
	// PerSecond is how many tokens come back in a second; finite, and above
	// zero unless the whole Rate is zero.
	PerSecond float64
	// Burst is how many tokens a full bucket holds; at least 1 unless the whole
	// Rate is zero.
	Burst int
}

// Window is an exact sliding window: never more than Limit in any stretch of
// Period. What happened at t has left the window at t+Period. The zero Window
// limits nothing.
type Window struct {
	// Limit is at least 1 unless the whole Window is zero.
	Limit int
	// Period is above zero unless the whole Window is zero.
	Period time.Duration
}

// Limits is what a [Cloud] enforces. The zero value enforces nothing but the
// slow mode of a chat, which is set with [Chat.SetSlowMode].
//
// A limit on messages counts messages, not calls: an album of ten photos or a
// forward of ten messages is ten. What costs more than a full bucket or a whole
// window holds passes when the bucket is full or the window empty, and is
// charged whole.
type Limits struct {
	// Account is one bucket for the messages of the account as a whole: sent,
	// forwarded, edited, with media or without.
	Account Rate
	// Chat is a bucket for each private chat: messages and edits.
	Chat Rate
	// Group is a window for each group and channel: messages and edits.
	Group Window
	// Writes is one bucket for the account's calls of the kind [Writes], on top
	// of Account, and Reads one for those of the kind [Reads]. They count calls; one
	// that passes pays, whether or not it is answered with an error afterwards.
	Writes, Reads Rate
	// Methods has a bucket for each method it names, by TL name
	// ("contacts.resolveUsername"), and ChatMethods one in each chat, for the
	// calls that name a chat. They are paid like Writes.
	Methods, ChatMethods map[string]Rate
	// Parts is a bucket for the calls of the kind [Parts] in each data centre.
	// Its floods are FLOOD_PREMIUM_WAIT_X.
	Parts Rate
	// Lengthen is what a call made inside a standing flood adds to it. Zero is
	// one second, a negative value adds nothing.
	Lengthen time.Duration
	// Slack lets a call pass that comes this much before there is room, and
	// charges it all the same, so that nothing adds up. It is for clients that count
	// a call when they send it: the network delays one call more than the next, by
	// some milliseconds even on loopback, and the one that was faster is flooded.
	// Zero is none; negative is an error.
	Slack time.Duration
}

// Published returns the limits that Telegram publishes for bots in its FAQ:
// about 30 messages a second for the account (here with a burst of 30), about
// one a second in a private chat (here with a burst of 3, for the FAQ allows
// short bursts) and 20 a minute in a group. Telegram publishes no limit for
// single methods or file parts, so neither has one here. Nothing is forgiven: Slack is 0.
func Published() Limits {
	return Limits{
		Account: Rate{PerSecond: 30, Burst: 30},
		Chat:    Rate{PerSecond: 1, Burst: 3},
		Group:   Window{Limit: 20, Period: time.Minute},
	}
}

const (
	defaultLengthen = time.Second
	// maxLength keeps sums of durations far from overflow.
	maxLength = 365 * 24 * time.Hour
)

// tokenTime is the time in which one token comes back; 0 for no limit.
func (r Rate) tokenTime() time.Duration {
	if r == (Rate{}) {
		return 0
	}
	return time.Duration(float64(time.Second) / r.PerSecond)
}

func (r Rate) validate(field string) error {
	if r == (Rate{}) {
		return nil
	}
	if math.IsNaN(r.PerSecond) || math.IsInf(r.PerSecond, 0) || r.PerSecond <= 0 {
		return fmt.Errorf("localdc: %s.PerSecond is %v: want a finite number above 0, or a zero Rate for no limit", field, r.PerSecond)
	}
	if r.Burst < 1 {
		return fmt.Errorf("localdc: %s.Burst is %d: want at least 1, or a zero Rate for no limit", field, r.Burst)
	}
	if float64(r.Burst)/r.PerSecond > maxLength.Seconds() {
		return fmt.Errorf("localdc: %s takes more than a year to refill: want a higher PerSecond than %v or a lower Burst than %d", field, r.PerSecond, r.Burst)
	}
	return nil
}

func (w Window) validate(field string) error {
	if w == (Window{}) {
		return nil
	}
	if w.Limit < 1 {
		return fmt.Errorf("localdc: %s.Limit is %d: want at least 1, or a zero Window for no limit", field, w.Limit)
	}
	if w.Period <= 0 || w.Period > maxLength {
		return fmt.Errorf("localdc: %s.Period is %v: want above 0 and at most a year", field, w.Period)
	}
	return nil
}

// validate checks l; known tells whether a name is a TL function's.
func (l Limits) validate(known func(name string) bool) error {
	for _, r := range []struct {
		field string
		rate  Rate
	}{
		{"Account", l.Account}, {"Chat", l.Chat}, {"Writes", l.Writes}, {"Reads", l.Reads}, {"Parts", l.Parts},
	} {
		if err := r.rate.validate("Limits." + r.field); err != nil {
			return err
		}
	}
	if err := l.Group.validate("Limits.Group"); err != nil {
		return err
	}
	if err := validateMethods("Limits.Methods", l.Methods, known); err != nil {
		return err
	}
	if err := validateMethods("Limits.ChatMethods", l.ChatMethods, known); err != nil {
		return err
	}
	if l.Lengthen > maxLength {
		return fmt.Errorf("localdc: Limits.Lengthen is %v: want at most a year", l.Lengthen)
	}
	if l.Slack < 0 || l.Slack > maxLength {
		return fmt.Errorf("localdc: Limits.Slack is %v: want 0 to a year", l.Slack)
	}
	return nil
}

func validateMethods(field string, methods map[string]Rate, known func(name string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if !known(name) {
			return fmt.Errorf("localdc: %s names %q: want the TL name of a function, such as messages.sendMessage", field, name)
		}
		if err := methods[name].validate(fmt.Sprintf("%s[%q]", field, name)); err != nil {
			return err
		}
	}
	return nil
}

// clone makes l independent of the caller's maps.
func (l Limits) clone() Limits {
	l.Methods, l.ChatMethods = maps.Clone(l.Methods), maps.Clone(l.ChatMethods)
	return l
}

func (l Limits) lengthen() time.Duration {
	switch {
	case l.Lengthen == 0:
		return defaultLengthen
	case l.Lengthen < 0:
		return 0
	default:
		return l.Lengthen
	}
}
