package breaker_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram/auth"
	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/breaker"
)

func send(chat int64) breaker.Call {
	return breaker.Call{Method: "messages.sendMessage", Chat: chat}
}

// handClock stands until it is set.
type handClock struct {
	clock.Clock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

func newBreaker(t testing.TB, opts breaker.Options) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(opts)
	require.NoError(t, err)
	return b
}

// refuse answers the call n times and returns how often the breaker said that it tripped.
func refuse(t testing.TB, b *breaker.Breaker, call breaker.Call, n, code int, msg string) (tripped int) {
	t.Helper()
	for range n {
		require.NoError(t, b.Check(call))
		err, now := b.Refused(call, tgerr.New(code, msg))
		require.ErrorIs(t, err, flood.ErrPermanent)
		if now {
			tripped++
		}
	}
	return tripped
}

func local(t testing.TB, b *breaker.Breaker, call breaker.Call) *flood.PermanentError {
	t.Helper()
	e, ok := errors.AsType[*flood.PermanentError](b.Check(call))
	require.True(t, ok, "%v is let go", call)
	require.True(t, e.Local)
	return e
}

func TestWhichAnswersNeverPass(t *testing.T) {
	for _, tt := range []struct {
		method string
		code   int
		msg    string
		want   flood.RefusalKind
	}{
		{"messages.sendMessage", 400, "PEER_FLOOD", flood.SpamLimited},
		{"messages.sendMessage", 420, "FROZEN_METHOD_INVALID", flood.AccountFrozen},
		{"messages.sendMessage", 401, "USER_DEACTIVATED", flood.AccountBanned},
		{"messages.sendMessage", 401, "USER_DEACTIVATED_BAN", flood.AccountBanned},
		{"auth.sendCode", 400, "PHONE_NUMBER_BANNED", flood.AccountBanned},
		{"messages.sendMessage", 401, "AUTH_KEY_UNREGISTERED", flood.AuthGone},
		{"messages.sendMessage", 401, "AUTH_KEY_INVALID", flood.AuthGone},
		{"messages.sendMessage", 401, "SESSION_REVOKED", flood.AuthGone},
		{"messages.sendMessage", 401, "SESSION_EXPIRED", flood.AuthGone},
		{"messages.sendMessage", 406, "AUTH_KEY_DUPLICATED", flood.AuthGone},

		{"account.sendChangePhoneCode", 400, "PHONE_NUMBER_BANNED", 0},
		{"auth.signIn", 401, "SESSION_PASSWORD_NEEDED", 0},
		{"messages.sendMessage", 401, "AUTH_KEY_PERM_EMPTY", 0},
		{"messages.getHistory", 400, "FROZEN_PARTICIPANT_MISSING", 0},
		{"messages.sendMessage", 400, "INPUT_USER_DEACTIVATED", 0},
		{"messages.sendMessage", 420, "PEER_FLOOD", 0},
		{"messages.sendMessage", 420, "FLOOD_WAIT_3", 0},
		{"messages.sendMessage", 500, "AUTH_KEY_UNSYNCHRONIZED", 0},
	} {
		t.Run(tt.method+" "+tt.msg, func(t *testing.T) {
			answer := fmt.Errorf("send: %w", tgerr.New(tt.code, tt.msg))
			err, tripped := newBreaker(t, breaker.Options{}).Refused(breaker.Call{Method: tt.method, Chat: 7}, answer)
			require.False(t, tripped)
			e, ok := errors.AsType[*flood.PermanentError](err)
			require.Equal(t, tt.want != 0, ok)
			if !ok {
				require.Same(t, answer, err, "as it came")
				return
			}
			require.Equal(t, tt.want, e.Kind)
			require.False(t, e.Local)
			require.Equal(t, int64(7), e.Chat)
			require.ErrorIs(t, err, answer, "nothing of it is lost")
			require.True(t, tgerr.Is(err, tt.msg))
			require.Equal(t, tt.code == 401, auth.IsUnauthorized(err))
		})
	}
	_, tripped := newBreaker(t, breaker.Options{Limit: 1}).Refused(send(1), nil)
	require.False(t, tripped)
}

func TestTwentyRefusalsAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Options{})
		start := time.Now()
		require.Zero(t, refuse(t, b, send(1), 19, 400, "PEER_FLOOD"))
		time.Sleep(time.Minute)
		require.Equal(t, 1, refuse(t, b, send(2), 1, 400, "PEER_FLOOD"))

		e := local(t, b, send(3))
		require.True(t, e.Since.Equal(start))
		e.Since = time.Time{}
		require.Equal(t, &flood.PermanentError{
			Kind: flood.SpamLimited, Method: "messages.sendMessage", Chat: 3, Count: 20, Local: true,
			Server: tgerr.New(400, "PEER_FLOOD"),
		}, e)
		require.True(t, tgerr.Is(e, "PEER_FLOOD"), "who stops at it is to stop")
		require.NoError(t, b.Check(breaker.Call{Method: "messages.editMessage", Chat: 3}))
		n, ok := flood.FromError(e)
		require.True(t, ok)
		require.False(t, n.Waitable())

		// For good: neither time nor a call that was on the wire clears it. An answer
		// that comes late does not trip it again.
		_, tripped := b.Refused(send(1), tgerr.New(400, "PEER_FLOOD"))
		require.False(t, tripped)
		b.Passed(send(4))
		time.Sleep(24 * time.Hour)
		local(t, b, send(3))

		require.Zero(t, b.Clear(func(r flood.Refusal) bool { return r.Kind == flood.AuthGone }))
		require.Equal(t, 1, b.Clear(nil))
		require.NoError(t, b.Check(send(3)))
		require.Empty(t, b.Snapshot())
	})
}

func TestRefusalsAreCountedTogetherForAPeriodFromTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Options{Limit: 3, Period: time.Minute})
		for range 10 {
			require.Zero(t, refuse(t, b, send(1), 2, 400, "PEER_FLOOD"))
			time.Sleep(time.Minute)
		}
		require.Empty(t, b.Snapshot())
		require.Zero(t, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"))
		time.Sleep(50 * time.Second)
		require.Zero(t, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"))
		time.Sleep(10*time.Second - 1)
		require.Equal(t, 1, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"), "to the end of the minute")

		// The worst that can happen within one period.
		b = newBreaker(t, breaker.Options{})
		require.Zero(t, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"))
		time.Sleep(breaker.DefaultPeriod - 1)
		require.Zero(t, refuse(t, b, send(1), 18, 400, "PEER_FLOOD"))
		time.Sleep(time.Nanosecond)
		require.Zero(t, refuse(t, b, send(1), 19, 400, "PEER_FLOOD"))
		require.Equal(t, 1, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"), "18 and 20 within ten minutes")
	})
}

func TestWhatASuccessProves(t *testing.T) {
	read := breaker.Call{Method: "users.getUsers"}
	for _, tt := range []struct {
		code    int
		msg     string
		success breaker.Call
		refutes bool
	}{
		{420, "FROZEN_METHOD_INVALID", send(2), true},
		{420, "FROZEN_METHOD_INVALID", read, false},
		{401, "USER_DEACTIVATED_BAN", read, true},
		{401, "USER_DEACTIVATED_BAN", breaker.Call{Method: "users.getUsers", DC: 2}, true},
		{401, "USER_DEACTIVATED_BAN", breaker.Call{Method: "help.getConfig"}, false},
		{401, "USER_DEACTIVATED_BAN", breaker.Call{Method: "upload.getCdnFile", DC: 203}, false},
		{401, "SESSION_REVOKED", read, true},
		{401, "SESSION_REVOKED", breaker.Call{Method: "users.getUsers", DC: 2}, false},
		{401, "SESSION_REVOKED", breaker.Call{Method: "auth.exportLoginToken"}, false},
		// A limited account may write to its contacts.
		{400, "PEER_FLOOD", send(2), false},
	} {
		t.Run(fmt.Sprint(tt.msg, " ", tt.success.Method, " ", tt.success.DC), func(t *testing.T) {
			b := newBreaker(t, breaker.Options{Limit: 3})
			refuse(t, b, send(1), 2, tt.code, tt.msg)
			require.Zero(t, b.Passed(tt.success))
			require.Equal(t, !tt.refutes, refuse(t, b, send(1), 1, tt.code, tt.msg) == 1)
		})
	}
}

func TestWithoutAKeyOnlyWhatLeadsToANewOneIsSent(t *testing.T) {
	for _, login := range []string{"auth.importBotAuthorization", "auth.signIn", "auth.checkPassword"} {
		b := newBreaker(t, breaker.Options{})
		require.Equal(t, 1, refuse(t, b, send(1), 20, 401, "AUTH_KEY_UNREGISTERED"))
		e := local(t, b, breaker.Call{Method: "users.getUsers"})
		require.True(t, auth.IsUnauthorized(e), "gotd asks for a login, and its updates end")
		require.NoError(t, b.Check(breaker.Call{Method: "users.getUsers", DC: 4}), "keys are a data centre's")
		for _, method := range []string{"auth.sendCode", "auth.exportLoginToken", "help.getConfig", "account.getPassword", login} {
			require.NoError(t, b.Check(breaker.Call{Method: method}))
		}
		// That they fail too locks nobody out.
		require.Zero(t, refuse(t, b, breaker.Call{Method: login}, 100, 401, "AUTH_KEY_UNREGISTERED"))
		require.Zero(t, b.Passed(breaker.Call{Method: "auth.exportLoginToken"}))
		local(t, b, send(1))

		require.Equal(t, 1, b.Passed(breaker.Call{Method: login}))
		require.NoError(t, b.Check(send(1)))
	}
	b := newBreaker(t, breaker.Options{})
	refuse(t, b, breaker.Call{Method: "auth.exportAuthorization"}, 100, 401, "AUTH_KEY_UNREGISTERED")
	require.Empty(t, b.Snapshot(), "it may be asked before there is a login")
	refuse(t, b, send(1), 20, 401, "AUTH_KEY_UNREGISTERED")
	require.Equal(t, 1, b.LoggedIn(), "by a QR code")
	require.NoError(t, b.Check(send(1)))
}

func TestAKeyOfAnotherDataCentreIsMendedThere(t *testing.T) {
	b := newBreaker(t, breaker.Options{})
	part := breaker.Call{DC: 4, Method: "upload.getFile"}
	refuse(t, b, send(1), 20, 401, "SESSION_REVOKED")
	refuse(t, b, part, 20, 401, "AUTH_KEY_UNREGISTERED")
	local(t, b, part)
	require.Equal(t, 1, b.Passed(breaker.Call{DC: 4, Method: "auth.importAuthorization"}))
	require.NoError(t, b.Check(part))
	local(t, b, send(1))
}

func TestABannedAccountSendsNothingButALogin(t *testing.T) {
	b := newBreaker(t, breaker.Options{})
	refuse(t, b, send(1), 20, 401, "USER_DEACTIVATED_BAN")
	local(t, b, breaker.Call{DC: 2, Method: "upload.getFile"})
	code := breaker.Call{Method: "auth.sendCode"}
	require.Equal(t, 1, refuse(t, b, code, 20, 400, "PHONE_NUMBER_BANNED"), "to hammer on a login is to hammer")
	local(t, b, code)
	require.NoError(t, b.Check(breaker.Call{Method: "auth.importBotAuthorization"}))
	require.Equal(t, 2, b.Passed(breaker.Call{Method: "auth.importBotAuthorization"}))
	require.NoError(t, b.Check(send(1)))
	require.NoError(t, b.Check(code))
}

func TestABreakerThatIsOffOnlyNamesRefusals(t *testing.T) {
	b := newBreaker(t, breaker.Options{Off: true})
	require.Zero(t, refuse(t, b, send(1), 1000, 400, "PEER_FLOOD"))
	b.Restore(fact(t, flood.Refusal{Kind: flood.AuthGone, Tripped: time.Now(), Code: 401, Message: "SESSION_REVOKED"}))
	require.NoError(t, b.Check(send(1)))
	require.Empty(t, b.Snapshot())
	require.Empty(t, b.Changes())
}

func TestOptionsOutOfRangeAreNamed(t *testing.T) {
	_, err := breaker.New(breaker.Options{Limit: -1, Period: -time.Second})
	require.ErrorContains(t, err, "Refusals.Limit is -1: want 1 or more, or 0 for 20; to stop nothing, set Off")
	require.ErrorContains(t, err, "Refusals.Period is -1s: want a duration above zero, or 0 for 10m0s")
}

func TestTheRefusalSaysWhichCallItWas(t *testing.T) {
	e := &flood.PermanentError{
		Kind: flood.SpamLimited, Method: "messages.sendMessage", Chat: 5, DC: 2, Count: 20,
		Since: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Local: true, Server: tgerr.New(400, "PEER_FLOOD"),
	}
	require.EqualError(t, e, "messages.sendMessage in chat 5 on DC 2: spam_limited, refused 20× since 2030-01-02T03:04:05Z, "+
		"not sent until it is cleared: rpc error code 400: PEER_FLOOD")
	require.NoError(t, (&flood.PermanentError{}).Unwrap())

	// What passes two breakers is counted by one.
	b := newBreaker(t, breaker.Options{Limit: 1})
	err, tripped := b.Refused(send(1), fmt.Errorf("outer: %w", e))
	require.False(t, tripped)
	require.ErrorContains(t, err, "outer")
	require.Empty(t, b.Snapshot())
}
