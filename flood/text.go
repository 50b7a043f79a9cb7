package flood

import "fmt"

// MarshalText is [Kind.String] as text. It fails for a kind that does not exist.
func (k Kind) MarshalText() ([]byte, error) {
	if k < FloodWait || k > Transport {
		return nil, fmt.Errorf("flood: %d is no kind", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads the name of a kind. The error names what does not exist.
func (k *Kind) UnmarshalText(text []byte) error {
	for known := FloodWait; known <= Transport; known++ {
		if known.String() == string(text) {
			*k = known
			return nil
		}
	}
	return unknown("kind", "flood_wait", text)
}

// MarshalText is [Scope.String] as text. It fails for a scope that does not exist.
func (s Scope) MarshalText() ([]byte, error) {
	if s < Chat || s > Account {
		return nil, fmt.Errorf("flood: %d is no scope", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the name of a scope. The error names what does not exist.
func (s *Scope) UnmarshalText(text []byte) error {
	for known := Chat; known <= Account; known++ {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return unknown("scope", "chat", text)
}

// unknown cuts the text short: it may come from anywhere.
func unknown(what, such string, text []byte) error {
	return fmt.Errorf("flood: unknown %s %q: want a name such as %q", what, text[:min(len(text), 64)], such)
}
