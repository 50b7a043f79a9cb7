package localdc

import (
	"fmt"
	"strings"
)

// Kind says what a call does, as far as limits care.
type Kind byte

const (
	// AnyKind is every call that needs a login.
	AnyKind Kind = iota
	// Messages is what sends, forwards or edits messages.
	Messages
	// Writes is what changes anything that others can see, and the bot's own
	// settings: messages too, but no file parts, and no coming and going of the
	// account (auth.*).
	Writes
	// Reads is what only reads, updates.getDifference and its like too, but no
	// file parts.
	Reads
	// Parts is what carries a part of a file: upload.saveFilePart,
	// upload.saveBigFilePart, upload.getFile and, in a CDN, upload.getCdnFile.
	Parts
)

// Scope is a set of calls: those that fit all of its fields, where the zero
// value of a field fits any. The zero Scope is all that the account does. What
// works without a login (help.getConfig, auth.importBotAuthorization and so on)
// is in a Scope that names the method, and in no other.
type Scope struct {
	// Method is the TL name of a function, such as messages.sendMessage.
	Method string
	// Chat is the marked id of the chat that the call names; see [Chat.MarkedID].
	Chat int64
	// DC is the data centre that the call arrives at.
	DC int
	// Kind is what the call does.
	Kind Kind
}

func (c *Cloud) validate(s Scope) error {
	if s.Method != "" {
		if err := c.known(s.Method); err != nil {
			return err
		}
	}
	if s.Kind > Parts {
		return fmt.Errorf("localdc: Scope.Kind is %d: want AnyKind, Messages, Writes, Reads or Parts", s.Kind)
	}
	if s.DC != 0 && !c.has(s.DC) && s.DC != c.opts.CDN {
		return fmt.Errorf("localdc: Scope.DC is %d: want 0 or one of %v", s.DC, c.opts.DCs)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Chat != 0 && c.chats.byID[s.Chat] == nil {
		return fmt.Errorf("localdc: Scope.Chat is %d: want 0 or the MarkedID of a chat", s.Chat)
	}
	return nil
}

// has tells whether a call is in the scope.
func (s Scope) has(c subject) bool {
	if s.Method != "" && s.Method != c.method ||
		s.Chat != 0 && s.Chat != c.chat ||
		s.DC != 0 && s.DC != c.dc {
		return false
	}
	switch s.Kind {
	case AnyKind:
		return s.Method != "" || !c.open
	case Messages:
		return c.messages > 0
	default:
		return s.Kind == c.kind
	}
}

// wait is what a flood of the scope is called.
func (s Scope) wait() string {
	if s.Kind == Parts {
		return premiumWait
	}
	return floodWait
}

// String names the scope in errors and test output: "messages.sendMessage in
// 1000001", "reads", "everything".
func (s Scope) String() string {
	parts := []string{[...]string{"everything", "messages", "writes", "reads", "parts"}[min(s.Kind, Parts)]}
	if s.Method != "" {
		parts[0] = s.Method
	}
	if s.Chat != 0 {
		parts = append(parts, fmt.Sprintf("in %d", s.Chat))
	}
	if s.DC != 0 {
		parts = append(parts, fmt.Sprintf("at DC %d", s.DC))
	}
	return strings.Join(parts, " ")
}
