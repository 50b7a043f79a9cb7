package flood

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gotd/td/tgerr"
)

// ErrRefused matches every [*RefusalError] with errors.Is.
var ErrRefused = errors.New("flood: refused")

// RefusalKind says which of Telegram's refusals that never pass by waiting it is.
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

// refusalKind reads the answer to a call of the method.
func refusalKind(method string, e *tgerr.Error) RefusalKind {
	notice, _ := FromError(e)
	switch {
	case notice.Kind == PeerFlood:
		return SpamLimited
	case notice.Kind == Frozen:
		return AccountFrozen
	case e.Code == 401 && e.IsOneOf("USER_DEACTIVATED", "USER_DEACTIVATED_BAN"),
		// Elsewhere it is about a number that the account was to change to.
		e.Code == 400 && e.IsType("PHONE_NUMBER_BANNED") && strings.HasPrefix(method, "auth."):
		return AccountBanned
	case e.Code == 401 && e.IsOneOf("AUTH_KEY_UNREGISTERED", "AUTH_KEY_INVALID", "SESSION_REVOKED", "SESSION_EXPIRED"),
		e.Code == 406 && e.IsType("AUTH_KEY_DUPLICATED"):
		return AuthGone
	}
	return 0
}

// concerns are the keys of all refusals that would concern the call, from first on.
func concerns(call Call) (ks [4]refusalKey, first int) {
	ks = [...]refusalKey{
		{kind: AuthGone, dc: call.DC}, {kind: AccountBanned},
		{kind: AccountFrozen, method: call.Method}, {kind: SpamLimited, method: call.Method},
	}
	if needsNoLogin(call.Method) {
		ks[1].method = call.Method
		return ks, 1
	}
	return ks, 0
}

// reach tells what a refusal of the call concerns. That a key is no longer good is not
// counted for calls that need none, since they are how to get a new one, nor for the
// question whether anybody is logged in, to which it is the ordinary answer.
func (k RefusalKind) reach(call Call, server *tgerr.Error) (key refusalKey, counts bool) {
	key.kind = k
	switch free := needsNoLogin(call.Method); k {
	case AuthGone:
		key.dc = call.DC
		return key, !free && !(call.AsksSelf && server.IsType("AUTH_KEY_UNREGISTERED"))
	case AccountBanned:
		if free {
			key.method = call.Method
		}
	default:
		key.method = call.Method
	}
	return key, true
}

// needsNoLogin reports whether the method is for those who are not logged in too.
func needsNoLogin(method string) bool {
	namespace, _, _ := strings.Cut(method, ".")
	switch namespace {
	case "auth", "help", "langpack":
		return true
	}
	switch method {
	case "account.getPassword", "account.sendVerifyEmailCode", "account.verifyEmail", // steps of a login
		"upload.getCdnFile": // data centres that know no accounts
		return true
	}
	return false
}

// provesKey reports whether the method succeeds only with a key that is good, or makes it
// so, though [needsNoLogin] counts it among the steps of a login.
func provesKey(method string) bool {
	return method == "auth.exportAuthorization" || method == "auth.importAuthorization"
}

// logsIn reports whether whoever calls the method with success is logged in then.
func logsIn(method string) bool {
	switch method {
	case "auth.signIn", "auth.signUp", "auth.checkPassword", "auth.recoverPassword", "auth.importBotAuthorization",
		"auth.importWebTokenAuthorization", "auth.finishPasskeyLogin":
		return true
	}
	return false
}

// RefusalError is a refusal that no waiting helps against: the call is not to be
// repeated. Find it with errors.As or errors.AsType, or ask errors.Is(err, [ErrRefused]).
//
// It unwraps to what the server said, and so it does when the guard refused in the
// server's place (Local): a program that stops at tgerr.Is(err, "PEER_FLOOD"), or that
// logs in again when gotd's auth.IsUnauthorized says so, is to stop, or log in, either
// way. Who must know whether the call was on the wire looks at Local first.
type RefusalError struct {
	Kind   RefusalKind
	Method string // TL name of the call
	Chat   int64  // its chat, 0 when it has none
	DC     int    // its data centre, 0 for the primary
	// Count is how many refusals the guard counted within its period, this one included
	// if it is the server's; 0 where none are counted.
	Count int
	Since time.Time // the first of those; zero when Count is
	// Local: the call was not sent. The guard refused it, as the server had refused its
	// like too often.
	Local bool
	// Server is what the server said, to an earlier call if Local.
	Server *tgerr.Error

	cause error // the error that Server was found in
}

// Error names the call, the kind and who refused.
func (e *RefusalError) Error() string {
	var b strings.Builder
	b.WriteString(Call{Method: e.Method, Chat: e.Chat}.String())
	if e.DC != 0 {
		fmt.Fprintf(&b, " on DC %d", e.DC)
	}
	fmt.Fprintf(&b, ": %v", e.Kind)
	if e.Count > 0 {
		fmt.Fprintf(&b, ", refused %d× since %s", e.Count, e.Since.Format(time.RFC3339))
	}
	if e.Local {
		b.WriteString(", not sent until the guard is cleared")
	}
	if e.Server != nil {
		fmt.Fprintf(&b, ": %v", e.Server)
	}
	return b.String()
}

// Is matches [ErrRefused].
func (e *RefusalError) Is(target error) bool { return target == ErrRefused }

// Unwrap returns the error that the server's answer came in, or Server.
func (e *RefusalError) Unwrap() error {
	switch {
	case e.cause != nil:
		return e.cause
	case e.Server != nil:
		return e.Server
	default:
		return nil
	}
}

// Refusal is what a [Guard] counted. As JSON it outlives the process, see
// [Guard.Restore].
type Refusal struct {
	Kind   RefusalKind `json:"kind"`
	Method string      `json:"method,omitempty"` // empty when all calls that need a login are concerned
	DC     int         `json:"dc,omitempty"`     // of AuthGone, 0: the primary; 0 for the others, which hold everywhere
	// At is when the server refused, the oldest first, at most [GuardOptions].Limit times
	// and Period back.
	At []time.Time `json:"at,omitempty"`
	// Tripped is when it was enough: calls are refused in the server's place until this
	// is cleared. Zero: not yet.
	Tripped time.Time `json:"tripped,omitzero"`
	// Code and Message are what the server said last.
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// MarshalJSON writes the refusal with its times in UTC. It fails for a Kind that does
// not exist.
func (r Refusal) MarshalJSON() ([]byte, error) {
	type plain Refusal
	at := r.At
	r.At = nil
	for _, t := range at {
		r.At = append(r.At, t.UTC())
	}
	if !r.Tripped.IsZero() {
		r.Tripped = r.Tripped.UTC()
	}
	return json.Marshal(plain(r))
}

// Key is the text under which a store keeps the refusal: the same for all that replace
// one another, different for all others, at most 512 bytes.
func (r Refusal) Key() string {
	return fmt.Sprintf("refusal/%v/%d/%s", r.Kind, r.DC, brief(r.Method))
}
