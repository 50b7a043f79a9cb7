package store

import (
	"errors"
	"fmt"
)

// ErrUnavailable is matched, with errors.Is, by the error of a store that could not be
// asked, did not answer in time, or answered with an error of its own.
var ErrUnavailable = errors.New("store unavailable")

// Policy is what becomes of a decision when the store that it is up to is unavailable.
type Policy uint8

const (
	// Closed refuses: nothing is admitted that the store has not agreed to.
	Closed Policy = iota
	// Open admits, and counts nothing.
	Open
	// Local decides by what this process knows itself.
	Local
)

// String returns "closed", "open" or "local".
func (p Policy) String() string {
	switch p {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case Local:
		return "local"
	default:
		return fmt.Sprintf("Policy(%d)", p)
	}
}

// ParsePolicy is the reverse of [Policy.String]. The error names what it takes.
func ParsePolicy(name string) (Policy, error) {
	for _, p := range [...]Policy{Closed, Open, Local} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("policy is %q: want closed, open or local", name)
}

// Valid reports whether p is one of the three.
func (p Policy) Valid() bool { return p <= Local }
