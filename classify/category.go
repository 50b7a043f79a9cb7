package classify

import (
	"fmt"
	"strings"
)

// Category is a kind of work that Telegram lets an account do at a rate of its
// own. The zero value is no category; see [Category.Valid].
type Category uint8

const (
	// Message is sending, editing and forwarding text, what a bot answers
	// with, and the small signs of a conversation: typing, votes, reactions,
	// read marks.
	Message Category = iota + 1
	// Media is anything that carries a photo, a video, audio or a file, and
	// the transfer of the file itself.
	Media
	// Query only reads.
	Query
	// Admin changes a chat: bans, promotions, pins, toggles, deletes, titles,
	// invites, coming and going.
	Admin
	// Bulk is catching up on updates, and pings.
	Bulk
	// Account changes the account: its settings, log-ins, contacts, purchases,
	// stickers, and a bot's own settings.
	Account
	// Global is not the category of any call: it stands for every call
	// together, on top of the category that each has.
	Global
)

// Categories returns the six categories that a call can have and then Global,
// in the order of their constants. The caller may change the slice.
func Categories() []Category {
	return []Category{Message, Media, Query, Admin, Bulk, Account, Global}
}

// ParseCategory returns the category that String gives name for. It wants the
// exact name in lower case; the error for any other lists the names there are.
func ParseCategory(name string) (Category, error) {
	names := make([]string, 0, int(Global))
	for _, c := range Categories() {
		if c.String() == name {
			return c, nil
		}
		names = append(names, c.String())
	}
	return 0, fmt.Errorf("unknown category %q: want one of %s", name, strings.Join(names, ", "))
}

// Valid reports whether c is one of those that [Categories] returns.
func (c Category) Valid() bool {
	return c >= Message && c <= Global
}

// String returns the name of c in lower case, "none" for the zero value, and
// Category(n) for a number that means nothing.
func (c Category) String() string {
	switch c {
	case 0:
		return "none"
	case Message:
		return "message"
	case Media:
		return "media"
	case Query:
		return "query"
	case Admin:
		return "admin"
	case Bulk:
		return "bulk"
	case Account:
		return "account"
	case Global:
		return "global"
	}
	return fmt.Sprintf("Category(%d)", uint8(c))
}

// MarshalText implements [encoding.TextMarshaler] with the name of c, "none"
// for the zero value. A number that means nothing is an error.
func (c Category) MarshalText() ([]byte, error) {
	if c != 0 && !c.Valid() {
		return nil, fmt.Errorf("marshal category: %d is none, want 0 to %d", uint8(c), uint8(Global))
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what
// [ParseCategory] does and "none", so that whatever MarshalText wrote comes back.
// On an error c keeps its value.
func (c *Category) UnmarshalText(text []byte) error {
	if string(text) == Category(0).String() {
		*c = 0
		return nil
	}
	parsed, err := ParseCategory(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
