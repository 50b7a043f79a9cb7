package breaker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
)

// Call is what a [Breaker] has to know of a call.
type Call struct {
	DC     int    // data centre, 0: the primary
	Method string // TL name, such as messages.sendMessage
	Chat   int64  // marked peer id, 0: the call is about no chat; only errors show it
	// AsksSelf marks a call that asks who is logged in, such as users.getUsers with
	// InputUserSelf. AUTH_KEY_UNREGISTERED is the ordinary answer to it before a login and
	// is not counted.
	AsksSelf bool
}

// key is what a refusal reaches.
type key struct {
	kind   flood.RefusalKind
	method string // empty: all calls that need a login
	dc     int
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.dc, other.dc), cmp.Compare(k.method, other.method))
}

// possible reports whether a refusal can have the key.
func (k key) possible() bool {
	keys := reaching(Call{DC: k.dc, Method: k.method})
	return slices.Contains(keys[:], k) && (k.method != "" || k.kind == flood.AccountBanned || k.kind == flood.AuthGone)
}

// reaching returns the keys of all refusals that reach the call; one of no kind stands for
// none. A lost key does not stop calls that need no login: they are how to get a new one.
func reaching(call Call) [4]key {
	keys := [...]key{
		{kind: flood.AuthGone, dc: call.DC}, {kind: flood.AccountBanned},
		{kind: flood.AccountFrozen, method: call.Method}, {kind: flood.SpamLimited, method: call.Method},
	}
	if needsNoLogin(call.Method) {
		keys[0], keys[1].method = key{}, call.Method
	}
	return keys
}

// counting returns the key under which a refusal of the call is counted; ok is false if it
// is not.
func counting(call Call, kind flood.RefusalKind, server *tgerr.Error) (k key, ok bool) {
	if kind == flood.AuthGone && call.AsksSelf && server.IsType("AUTH_KEY_UNREGISTERED") {
		return key{}, false
	}
	keys := reaching(call)
	i := slices.IndexFunc(keys[:], func(k key) bool { return k.kind == kind })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

func (c Call) refused(kind flood.RefusalKind) *flood.PermanentError {
	return &flood.PermanentError{Kind: kind, Method: c.Method, Chat: c.Chat, DC: c.DC}
}

// kindOf reads the answer to a call of the method. It is 0 for one that is no permanent
// refusal.
func kindOf(method string, e *tgerr.Error) flood.RefusalKind {
	notice, _ := flood.FromError(e)
	switch {
	case notice.Kind == flood.PeerFlood:
		return flood.SpamLimited
	case notice.Kind == flood.Frozen:
		return flood.AccountFrozen
	case e.Code == 401 && e.IsOneOf("USER_DEACTIVATED", "USER_DEACTIVATED_BAN"),
		// In answer to other methods it is about a number that the account was to change to.
		e.Code == 400 && e.IsType("PHONE_NUMBER_BANNED") && strings.HasPrefix(method, "auth."):
		return flood.AccountBanned
	case e.Code == 401 && e.IsOneOf("AUTH_KEY_UNREGISTERED", "AUTH_KEY_INVALID", "SESSION_REVOKED", "SESSION_EXPIRED"),
		e.Code == 406 && e.IsType("AUTH_KEY_DUPLICATED"):
		return flood.AuthGone
	}
	return 0
}

// needsNoLogin reports whether the method can be called without a login.
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

// provesKey reports whether the method succeeds only with a good key, or makes it good,
// though [needsNoLogin] counts it among the steps of a login.
func provesKey(method string) bool {
	return method == "auth.exportAuthorization" || method == "auth.importAuthorization"
}

// logsIn reports whether a success of the method is a login.
func logsIn(method string) bool {
	switch method {
	case "auth.signIn", "auth.signUp", "auth.checkPassword", "auth.recoverPassword", "auth.importBotAuthorization",
		"auth.importWebTokenAuthorization", "auth.finishPasskeyLogin":
		return true
	}
	return false
}
