package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnavailable is matched, with errors.Is, by the error of a store that could not be
// asked, did not answer in time, or answered with an error of its own.
var ErrUnavailable = errors.New("store unavailable")

// ErrMisconfigured is matched by the error of a store that stays unavailable until somebody
// changes its configuration or the program's: a wrong password, a right that the user lacks,
// a server that only reads. Such an error matches [ErrUnavailable] as well.
var ErrMisconfigured = errors.New("store misconfigured")

// Checker is a store that can tell, before it is first used, whether it can be used at all.
type Checker interface {
	// Check connects, and tries all that the store needs of its server. It blocks until it
	// knows, for a bounded time, or until ctx is done. The error names what is missing and
	// what to do. It matches [ErrMisconfigured] if waiting does not help, and
	// [ErrUnavailable] in any case, or it is the context's.
	Check(ctx context.Context) error
}

// Policy is what becomes of a decision when the store that it is up to is unavailable.
type Policy uint8

const (
	// FailClosed refuses: nothing is admitted that the store has not agreed to.
	FailClosed Policy = iota
	// FailOpen admits, and counts nothing.
	FailOpen
	// FailLocal decides by what this process knows itself.
	FailLocal
)

// String returns "closed", "open" or "local".
func (p Policy) String() string {
	switch p {
	case FailClosed:
		return "closed"
	case FailOpen:
		return "open"
	case FailLocal:
		return "local"
	default:
		return fmt.Sprintf("Policy(%d)", p)
	}
}

// ParsePolicy is the reverse of [Policy.String]. The error names what it takes.
func ParsePolicy(name string) (Policy, error) {
	for _, p := range [...]Policy{FailClosed, FailOpen, FailLocal} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("policy is %q: want closed, open or local", name)
}

// Valid reports whether p is one of the three.
func (p Policy) Valid() bool { return p <= FailLocal }
