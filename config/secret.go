package config

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
)

const redacted = "[redacted]"

// Secret is a text that does not print. Every verb of package fmt and every
// encoder that asks for text (JSON, YAML, XML, slog, zap) shows "[redacted]", or
// nothing when the secret is not set; only [Secret.Reveal] gives the text.
//
// The zero value is a secret that is not set. Two secrets are compared by what
// they reveal, not with ==.
type Secret struct {
	// fmt prints the unexported fields of a struct that holds a Config without calling
	// methods; of a pointer it prints the address.
	text *string
}

// NewSecret returns a secret that reveals text. An empty text is a secret that
// is not set.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text, "" if the secret is not set.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String returns "[redacted]", or "" if the secret is not set.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// Format writes what String returns, whatever the verb and its flags.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns what String returns. Its error is always nil.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// maxShown bounds the text that a message shows, in bytes: a message is a line.
const maxShown = 80

// redact returns text as a message may show it: only its length if it is long or may
// hold a secret, which may stand under the wrong key. An app hash has 32 characters, a
// bot token 35 after its colon. What people write by hand is shorter.
func redact(text string) string {
	if len(text) > maxShown || regexp.MustCompile(`[\w-]{24}`).MatchString(text) {
		return fmt.Sprintf("(%d characters, not shown)", len(text))
	}
	return text
}

// show returns a key as it may stand in a path: in quotes unless it is a plain name.
func show(key string) string {
	if shown := redact(key); matches(`[\w.-]+`, shown) {
		return shown
	}
	return strconv.Quote(redact(key))
}
