package invoke

import (
	"context"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/internal/breaker"
)

// learn reads from a successful answer who the account is, and what it proves about
// refusals: a login by any means mends those that were about the login. The error matches
// ErrOtherAccount.
func (m *Middleware) learn(ctx context.Context, call breaker.Call, output bin.Decoder) error {
	l := m.limiter
	cleared := l.breaker.Passed(call)
	self, loggedIn := account(output)
	// An authorization that was imported is good in its own data centre only.
	if loggedIn && call.Method != "auth.importAuthorization" {
		cleared += l.breaker.LoggedIn()
	}
	if cleared > 0 {
		l.keeper.Remember(ctx)
	}
	if self == nil {
		return nil
	}
	if err := m.shown(ctx, self.ID, self.Bot); err != nil {
		return err
	}
	l.SetBot(self.Bot)
	return nil
}

// account returns the account that the answer shows, nil if it shows none, and whether the
// answer is that to a login.
func account(output bin.Decoder) (self *tg.User, loggedIn bool) {
	switch out := output.(type) {
	case *tg.UserClassVector:
		if out == nil {
			return nil, false
		}
		for _, user := range out.Elems {
			if user, ok := user.(*tg.User); ok && user.Self {
				return user, false
			}
		}
		return nil, false
	default:
		authorization, ok := authorization(output).(*tg.AuthAuthorization) // not one that asks to sign up
		if !ok {
			return nil, false
		}
		self, _ = authorization.User.(*tg.User)
		return self, true
	}
}

// authorization returns what an answer carries of a login by bot token, code, password or
// passkey, by QR code, or by a token that the device kept from before.
func authorization(output bin.Decoder) tg.AuthAuthorizationClass {
	switch out := output.(type) {
	case *tg.AuthAuthorizationBox:
		if out != nil {
			return out.Authorization
		}
	case *tg.AuthLoginTokenBox:
		if out != nil {
			if success, ok := out.LoginToken.(*tg.AuthLoginTokenSuccess); ok {
				return success.Authorization
			}
		}
	case *tg.AuthSentCodeBox:
		if out != nil {
			if success, ok := out.SentCode.(*tg.AuthSentCodeSuccess); ok {
				return success.Authorization
			}
		}
	}
	return nil
}

// asksSelf reports whether a request asks who is logged in, as gotd's Auth().Status does.
func asksSelf(input bin.Encoder) bool {
	var asked []tg.InputUserClass
	switch request := classify.Unwrap(input).(type) {
	case *tg.UsersGetUsersRequest:
		asked = request.ID
	case *tg.UsersGetFullUserRequest:
		asked = []tg.InputUserClass{request.ID}
	}
	for _, user := range asked {
		if _, ok := user.(*tg.InputUserSelf); ok {
			return true
		}
	}
	return false
}
