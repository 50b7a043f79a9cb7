package flood

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gotd/td/tgerr"
)

// ErrGivenUp matches every [*WaitError] with errors.Is.
var ErrGivenUp = errors.New("flood: given up")

// Reason says why a wait was not sat out.
type Reason uint8

const (
	// KnownFlood: the call was not sent, because a flood known from an earlier
	// call covers it and lasts longer than this call may wait.
	KnownFlood Reason = iota + 1
	// OverThreshold: the server's wait is longer than the [Threshold].
	OverThreshold
	// OverBudget: the waits of this call, taken together, are too long.
	OverBudget
	// OverRetries: the call was flooded too many times.
	OverRetries
	// ContextDeadline: the context ends before the flood does.
	ContextDeadline
	// AnotherFirst: the call was not sent, because another one goes first after the
	// flood and has no answer yet. See [FirstTimeout].
	AnotherFirst
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case KnownFlood:
		return "known from an earlier call and longer than this call may wait"
	case OverThreshold:
		return "longer than the threshold"
	case OverBudget:
		return "the waits of this call are too long together"
	case OverRetries:
		return "flooded too many times"
	case ContextDeadline:
		return "the context ends earlier"
	case AnotherFirst:
		return "another call goes first and has no answer yet"
	default:
		return "unknown reason"
	}
}

// WaitError is a wait that was not sat out. Find it with errors.As or
// errors.AsType, or ask errors.Is(err, [ErrGivenUp]).
//
// It deliberately does not match tgerr.As and tgerr.AsFloodWait: gotd's uploader
// and downloader would sleep it out again. What the server said is in Server. With the
// Reason [ContextDeadline] it does not match context.DeadlineExceeded: the context is not
// done yet, and gotd's downloader would repeat the call at once.
type WaitError struct {
	Method string // TL name of the call
	Chat   int64  // its chat, 0 when it has none
	DC     int    // its data centre, 0 for the primary
	Kind   Kind
	Scope  Scope // how far the flood reaches
	// Wait is how long it takes from when the call was given up until one may go: until
	// the flood ends, until a call may look whether a guess is right, or until another goes
	// first in place of one that is not answered. It is always above 0.
	Wait  time.Duration
	Until time.Time // when that is; a later flood may have moved it since

	Attempts int          // how often the call was sent
	Server   *tgerr.Error // what the server last said to this call; nil when the flood is known from another
	Reason   Reason
}

// Error names the call, the wait and the reason.
func (e *WaitError) Error() string {
	var b strings.Builder
	b.WriteString(e.Method)
	if e.Chat != 0 {
		fmt.Fprintf(&b, " in chat %d", e.Chat)
	}
	if e.DC != 0 {
		fmt.Fprintf(&b, " on DC %d", e.DC)
	}
	fmt.Fprintf(&b, ": %v of the %v, %v left", e.Kind, e.Scope, max(e.Wait.Round(time.Millisecond), time.Millisecond))
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, " (until %s)", e.Until.Format(time.RFC3339))
	}
	if e.Attempts == 0 {
		fmt.Fprintf(&b, ", not sent: %v", e.Reason)
	} else {
		fmt.Fprintf(&b, ", sent %d×, given up: %v", e.Attempts, e.Reason)
	}
	return b.String()
}

// Is matches [ErrGivenUp].
func (e *WaitError) Is(target error) bool { return target == ErrGivenUp }
