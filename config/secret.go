package config

import (
	"fmt"
	"io"
)

const redacted = "[redacted]"

// Secret is a text that does not print. Every verb of package fmt and every
// encoder that asks for text (JSON, YAML, XML, slog, zap) shows "[redacted]", or
// nothing when the secret is not set; only [Secret.Reveal] gives the text.
//
// The zero value is a secret that is not set. Two secrets are compared by what
// they reveal, not with ==.
type Secret struct {
	// A pointer, for the places that methods do not reach: fmt prints the
	// unexported fields of a struct that holds a Config without asking them, and
	// of a pointer it prints the address.
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
