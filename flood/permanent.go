package flood

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gotd/td/tgerr"
)

// ErrPermanent matches every [*PermanentError] with errors.Is.
var ErrPermanent = errors.New("flood: permanent refusal")

// RefusalKind is a kind of permanent refusal: an answer of Telegram's that no waiting
// changes.
type RefusalKind uint8

const (
	// SpamLimited is PEER_FLOOD: the account may not write to strangers. It concerns the
	// method.
	SpamLimited RefusalKind = iota + 1
	// AccountFrozen is FROZEN_METHOD_INVALID: the account is frozen for breaking the
	// rules. It concerns the method. FROZEN_PARTICIPANT_MISSING, which concerns one
	// peer, is not among the refusals.
	AccountFrozen
	// AccountBanned is USER_DEACTIVATED, USER_DEACTIVATED_BAN and, in answer to a login,
	// PHONE_NUMBER_BANNED. It concerns all calls that need a login; in answer to one
	// that needs none, that method.
	AccountBanned
	// AuthGone is AUTH_KEY_UNREGISTERED, AUTH_KEY_INVALID, SESSION_REVOKED,
	// SESSION_EXPIRED and AUTH_KEY_DUPLICATED: the account has to log in again. It
	// concerns all calls to the data centre that need a login. SESSION_PASSWORD_NEEDED,
	// a step of a login, and AUTH_KEY_PERM_EMPTY, which a new temporary key
	// cures, are not among the refusals.
	AuthGone
)

// String returns a short name in snake case, fit for the label of a metric. There are
// as many as there are kinds.
func (k RefusalKind) String() string {
	switch k {
	case SpamLimited:
		return "spam_limited"
	case AccountFrozen:
		return "account_frozen"
	case AccountBanned:
		return "account_banned"
	case AuthGone:
		return "auth_gone"
	default:
		return "unknown"
	}
}

// MarshalText is [RefusalKind.String] as text. It fails for a kind that does not exist.
func (k RefusalKind) MarshalText() ([]byte, error) {
	if k < SpamLimited || k > AuthGone {
		return nil, fmt.Errorf("flood: %d is no kind of refusal", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads the name of a kind. The error names what does not exist.
func (k *RefusalKind) UnmarshalText(text []byte) error {
	for known := SpamLimited; known <= AuthGone; known++ {
		if known.String() == string(text) {
			*k = known
			return nil
		}
	}
	return unknown("kind of refusal", "spam_limited", text)
}

// PermanentError is a permanent refusal: waiting does not help, and the call must not be
// repeated. Find it with errors.As or errors.AsType, or ask errors.Is(err, [ErrPermanent]).
//
// It unwraps to the server's answer even if the call was not sent (Local). A program that
// stops at tgerr.Is(err, "PEER_FLOOD"), or logs in again when gotd's auth.IsUnauthorized
// reports true, has to do so in both cases. Look at Local to know whether the call was on
// the wire.
type PermanentError struct {
	Kind   RefusalKind
	Method string // TL name of the call
	Chat   int64  // its chat, 0 when it has none
	DC     int    // its data centre, 0 for the primary
	// Count is how many refusals of the kind were counted, this one included if it is the
	// server's; 0 if it does not count.
	Count int
	Since time.Time // when the first of those came; zero when Count is
	// Local: the call was not sent, because the server had refused too many like it.
	Local bool
	// Server is the server's answer, to an earlier call if Local.
	Server *tgerr.Error
	// Err is the error that Server was found in; nil if Local.
	Err error
}

// Error names the call, the kind, the server's answer, and whether the call was sent.
func (e *PermanentError) Error() string {
	var b strings.Builder
	b.WriteString(e.Method)
	if e.Chat != 0 {
		fmt.Fprintf(&b, " in chat %d", e.Chat)
	}
	if e.DC != 0 {
		fmt.Fprintf(&b, " on DC %d", e.DC)
	}
	fmt.Fprintf(&b, ": %v", e.Kind)
	if e.Count > 0 {
		fmt.Fprintf(&b, ", refused %d× since %s", e.Count, e.Since.Format(time.RFC3339))
	}
	if e.Local {
		b.WriteString(", not sent until it is cleared")
	}
	if e.Server != nil {
		fmt.Fprintf(&b, ": %v", e.Server)
	}
	return b.String()
}

// Is matches [ErrPermanent].
func (e *PermanentError) Is(target error) bool { return target == ErrPermanent }

// Unwrap returns Err, or Server without it.
func (e *PermanentError) Unwrap() error {
	switch {
	case e.Err != nil:
		return e.Err
	case e.Server != nil:
		return e.Server
	default:
		return nil
	}
}

// Refusal is what is known of a permanent refusal: how often the server refused so, and
// whether calls of its kind are still sent.
type Refusal struct {
	Kind   RefusalKind `json:"kind"`
	Method string      `json:"method,omitempty"` // empty when it concerns all calls that need a login
	DC     int         `json:"dc,omitempty"`     // of AuthGone, 0: the primary; 0 for the others, which hold everywhere
	Count  int         `json:"count,omitempty"`  // refusals since Since; 0 if another process did not say
	Since  time.Time   `json:"since,omitzero"`   // when the first of them came
	// Tripped is when there were too many: since then calls of the kind are not sent. Zero
	// while they are.
	Tripped time.Time `json:"tripped,omitzero"`
	// Code and Message are what the server said last.
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}
