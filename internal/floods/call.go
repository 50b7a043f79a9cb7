package floods

import (
	"fmt"
	"strings"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
)

// Call is what the [Tracker] has to know of a call.
type Call struct {
	DC     int    // data centre, 0: the primary
	Method string // TL name, such as messages.sendMessage
	Chat   int64  // marked peer id, 0: the call is about no chat
	Reads  bool   // the call only reads
	// Inside marks a call made from inside another one that is on the wire, as
	// gotd does when it moves to another data centre. It does not wait for a probe,
	// which may be the very call that it serves.
	Inside bool
	// Category groups the methods that one limit covers. A flood of a call without one shows
	// nothing about how its method is limited, as of a file part or a call that pays.
	Category classify.Category
	// Quiet: little else was sent to the chat lately, so that a flood is hardly about the chat.
	// It is for [Tracker.Flooded] only, and may be set in [Pass.Call] before that.
	Quiet bool
	// Retried: the call itself was flooded before. It is for Flooded only, as Quiet is.
	Retried bool
}

func (c Call) String() string {
	if c.Chat == 0 {
		return c.Method
	}
	return fmt.Sprintf("%s in chat %d", c.Method, c.Chat)
}

// isUpdates reports whether the method asks for missed updates. Without its answer a
// client is deaf, so only a flood of that very method holds it back, never a guess.
func isUpdates(method string) bool { return strings.HasPrefix(method, "updates.") }

// key names a record: what the flood belongs to.
type key struct {
	scope flood.Scope
	// fixed keeps the kinds whose scope Telegram tells apart from FLOOD_WAIT,
	// whose scope is inferred: they neither widen nor count as evidence.
	fixed bool
	// inferred keeps a scope that is a guess apart from the same scope as the server
	// told it. The account's is always a guess.
	inferred bool

	dc     int
	method string // empty for the account, and for slow mode
	chat   int64
	reads  bool // for the account
}

// class numbers what keys differ in besides the call, from 0 to 5.
func (k key) class() int {
	class := int(k.scope - flood.Chat)
	switch {
	case k.fixed:
		class += 3
	case k.scope == flood.Method && k.inferred:
		class = 5 // of the account nothing is fixed
	}
	return class
}

func (k key) covers(c Call) bool {
	if k.dc != c.DC {
		return false
	}
	switch k.scope {
	case flood.Chat:
		return k.chat == c.Chat && (k.method == c.Method || k.method == "" && flood.HeldBySlowMode(c.Method))
	case flood.Method:
		return k.method == c.Method
	default:
		return k.reads == c.Reads
	}
}

func (c Call) chatKey() key {
	return key{scope: flood.Chat, dc: c.DC, method: c.Method, chat: c.Chat}
}
func (c Call) methodKey() key { return key{scope: flood.Method, dc: c.DC, method: c.Method} }

// guessedKey is the method's when that is inferred.
func (c Call) guessedKey() key {
	return key{scope: flood.Method, inferred: true, dc: c.DC, method: c.Method}
}
func (c Call) accountKey() key {
	return key{scope: flood.Account, inferred: true, dc: c.DC, reads: c.Reads}
}

// fixedKey is where a flood of the kind is kept, for the kinds whose scope is told.
func (c Call) fixedKey(kind flood.Kind) key {
	k := c.chatKey()
	switch {
	case kind == flood.SlowMode:
		// A chat that is not known is still not all chats: 0 stands for the
		// calls whose chat nobody could tell.
		if flood.HeldBySlowMode(c.Method) {
			k.method = ""
		}
	case kind == flood.PremiumWait, c.Chat == 0:
		k = c.methodKey()
	}
	k.fixed = true
	return k
}

// keys are all the keys that cover the call: the first n of ks.
func (c Call) keys() (ks [maxCovering]key, n int) {
	ks = [...]key{
		c.chatKey(), c.methodKey(), c.guessedKey(), c.accountKey(),
		c.chatKey(), c.methodKey(), c.chatKey(),
	}
	ks[4].fixed, ks[5].fixed, ks[6].fixed = true, true, true
	ks[6].method = "" // slow mode
	if flood.HeldBySlowMode(c.Method) {
		return ks, maxCovering
	}
	return ks, maxCovering - 1
}

// maxCovering is how many records can cover one call.
const maxCovering = 7
