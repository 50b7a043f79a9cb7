package flood_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/td/telegram/auth"
	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

func guard(t testing.TB, opts flood.GuardOptions) *flood.Guard {
	t.Helper()
	g, err := flood.NewGuard(opts)
	require.NoError(t, err)
	return g
}

// refuse answers the call n times and returns how often the guard said that it tripped.
func refuse(t testing.TB, g *flood.Guard, call flood.Call, n, code int, msg string) (tripped int) {
	t.Helper()
	for range n {
		require.NoError(t, g.Check(call))
		err, now := g.Refused(call, tgerr.New(code, msg))
		require.ErrorIs(t, err, flood.ErrRefused)
		if now {
			tripped++
		}
	}
	return tripped
}

func local(t testing.TB, g *flood.Guard, call flood.Call) *flood.RefusalError {
	t.Helper()
	e, ok := errors.AsType[*flood.RefusalError](g.Check(call))
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
			err, tripped := guard(t, flood.GuardOptions{}).Refused(flood.Call{Method: tt.method, Chat: 7}, answer)
			require.False(t, tripped)
			e, ok := errors.AsType[*flood.RefusalError](err)
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
	_, tripped := guard(t, flood.GuardOptions{Limit: 1}).Refused(send(1), nil)
	require.False(t, tripped)
}

func TestTwentyRefusalsAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, flood.GuardOptions{})
		start := time.Now()
		require.Zero(t, refuse(t, g, send(1), 19, 400, "PEER_FLOOD"))
		time.Sleep(time.Minute)
		require.Equal(t, 1, refuse(t, g, send(2), 1, 400, "PEER_FLOOD"))

		e := local(t, g, send(3))
		require.True(t, e.Since.Equal(start))
		e.Since = time.Time{}
		require.Equal(t, &flood.RefusalError{
			Kind: flood.SpamLimited, Method: "messages.sendMessage", Chat: 3, Count: 20, Local: true,
			Server: tgerr.New(400, "PEER_FLOOD"),
		}, e)
		require.True(t, tgerr.Is(e, "PEER_FLOOD"), "who stops at it is to stop")
		require.NoError(t, g.Check(flood.Call{Method: "messages.editMessage", Chat: 3}))
		n, ok := flood.FromError(e)
		require.True(t, ok)
		require.False(t, n.Waitable())

		// For good: neither time nor a call that was on the wire clears it. An answer
		// that comes late does not trip it again.
		_, tripped := g.Refused(send(1), tgerr.New(400, "PEER_FLOOD"))
		require.False(t, tripped)
		g.Passed(send(4))
		time.Sleep(24 * time.Hour)
		local(t, g, send(3))

		require.Zero(t, g.Clear(func(r flood.Refusal) bool { return r.Kind == flood.AuthGone }))
		require.Equal(t, 1, g.Clear(nil))
		require.NoError(t, g.Check(send(3)))
		require.Empty(t, g.Snapshot())
	})
}

func TestRefusalsAreCountedInASlidingWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, flood.GuardOptions{Limit: 3, Period: time.Minute, Journal: true})
		for range 10 {
			require.Zero(t, refuse(t, g, send(1), 2, 400, "PEER_FLOOD"))
			time.Sleep(time.Minute)
		}
		require.Empty(t, g.Changes(), "what is over is known by everybody")
		require.Empty(t, g.Snapshot())
		require.Zero(t, refuse(t, g, send(1), 1, 400, "PEER_FLOOD"))
		time.Sleep(50 * time.Second)
		require.Zero(t, refuse(t, g, send(1), 1, 400, "PEER_FLOOD"))
		time.Sleep(9 * time.Second)
		require.Equal(t, 1, refuse(t, g, send(1), 1, 400, "PEER_FLOOD"), "across any minute")
	})
}

func TestWhatASuccessProves(t *testing.T) {
	read := flood.Call{Method: "users.getUsers", Reads: true}
	for _, tt := range []struct {
		code    int
		msg     string
		success flood.Call
		refutes bool
	}{
		{420, "FROZEN_METHOD_INVALID", send(2), true},
		{420, "FROZEN_METHOD_INVALID", read, false},
		{401, "USER_DEACTIVATED_BAN", read, true},
		{401, "USER_DEACTIVATED_BAN", flood.Call{Method: "users.getUsers", DC: 2}, true},
		{401, "USER_DEACTIVATED_BAN", flood.Call{Method: "help.getConfig"}, false},
		{401, "USER_DEACTIVATED_BAN", flood.Call{Method: "upload.getCdnFile", DC: 203}, false},
		{401, "SESSION_REVOKED", read, true},
		{401, "SESSION_REVOKED", flood.Call{Method: "users.getUsers", DC: 2}, false},
		{401, "SESSION_REVOKED", flood.Call{Method: "auth.exportLoginToken"}, false},
		// A limited account may write to its contacts.
		{400, "PEER_FLOOD", send(2), false},
	} {
		t.Run(fmt.Sprint(tt.msg, " ", tt.success.Method, " ", tt.success.DC), func(t *testing.T) {
			g := guard(t, flood.GuardOptions{Limit: 3})
			refuse(t, g, send(1), 2, tt.code, tt.msg)
			require.Zero(t, g.Passed(tt.success))
			require.Equal(t, !tt.refutes, refuse(t, g, send(1), 1, tt.code, tt.msg) == 1)
		})
	}
}

func TestWithoutAKeyOnlyWhatLeadsToANewOneIsSent(t *testing.T) {
	for _, login := range []string{"auth.importBotAuthorization", "auth.signIn", "auth.checkPassword"} {
		g := guard(t, flood.GuardOptions{})
		require.Equal(t, 1, refuse(t, g, send(1), 20, 401, "AUTH_KEY_UNREGISTERED"))
		e := local(t, g, flood.Call{Method: "users.getUsers", Reads: true})
		require.True(t, auth.IsUnauthorized(e), "gotd asks for a login, and its updates end")
		require.NoError(t, g.Check(flood.Call{Method: "users.getUsers", DC: 4}), "keys are a data centre's")
		for _, method := range []string{"auth.sendCode", "auth.exportLoginToken", "help.getConfig", "account.getPassword", login} {
			require.NoError(t, g.Check(flood.Call{Method: method}))
		}
		// That they fail too locks nobody out.
		require.Zero(t, refuse(t, g, flood.Call{Method: login}, 100, 401, "AUTH_KEY_UNREGISTERED"))
		require.Zero(t, g.Passed(flood.Call{Method: "auth.exportLoginToken"}))
		local(t, g, send(1))

		require.Equal(t, 1, g.Passed(flood.Call{Method: login}))
		require.NoError(t, g.Check(send(1)))
	}
	g := guard(t, flood.GuardOptions{})
	refuse(t, g, flood.Call{Method: "auth.exportAuthorization"}, 100, 401, "AUTH_KEY_UNREGISTERED")
	require.Empty(t, g.Snapshot(), "it may be asked before there is a login")
	refuse(t, g, send(1), 20, 401, "AUTH_KEY_UNREGISTERED")
	require.Equal(t, 1, g.LoggedIn(), "by a QR code")
	require.NoError(t, g.Check(send(1)))
}

func TestAKeyOfAnotherDataCentreIsMendedThere(t *testing.T) {
	g := guard(t, flood.GuardOptions{})
	part := flood.Call{DC: 4, Method: "upload.getFile"}
	refuse(t, g, send(1), 20, 401, "SESSION_REVOKED")
	refuse(t, g, part, 20, 401, "AUTH_KEY_UNREGISTERED")
	local(t, g, part)
	require.Equal(t, 1, g.Passed(flood.Call{DC: 4, Method: "auth.importAuthorization"}))
	require.NoError(t, g.Check(part))
	local(t, g, send(1))
}

func TestABannedAccountSendsNothingButALogin(t *testing.T) {
	g := guard(t, flood.GuardOptions{})
	refuse(t, g, send(1), 20, 401, "USER_DEACTIVATED_BAN")
	local(t, g, flood.Call{DC: 2, Method: "upload.getFile"})
	code := flood.Call{Method: "auth.sendCode"}
	require.Equal(t, 1, refuse(t, g, code, 20, 400, "PHONE_NUMBER_BANNED"), "to hammer on a login is to hammer")
	local(t, g, code)
	require.NoError(t, g.Check(flood.Call{Method: "auth.importBotAuthorization"}))
	require.Equal(t, 2, g.Passed(flood.Call{Method: "auth.importBotAuthorization"}))
	require.NoError(t, g.Check(send(1)))
	require.NoError(t, g.Check(code))
}

func TestAGuardThatIsOffOnlyNames(t *testing.T) {
	g := guard(t, flood.GuardOptions{Off: true, Journal: true})
	require.Zero(t, refuse(t, g, send(1), 1000, 400, "PEER_FLOOD"))
	g.Restore(flood.Refusal{Kind: flood.AuthGone, Tripped: time.Now(), Code: 401, Message: "SESSION_REVOKED"})
	require.NoError(t, g.Check(send(1)))
	require.Empty(t, g.Snapshot())
	require.Empty(t, g.Changes())
}

func TestGuardOptionsOutOfRangeAreNamed(t *testing.T) {
	_, err := flood.NewGuard(flood.GuardOptions{Limit: -1, Period: -time.Second})
	require.ErrorContains(t, err, "Limit is -1: want 1 to 1000")
	require.ErrorContains(t, err, "Period is -1s: want")
	_, err = flood.NewGuard(flood.GuardOptions{Limit: 1001})
	require.ErrorContains(t, err, "say Off")
}

func TestTheRefusalSaysWhichCallItWas(t *testing.T) {
	e := &flood.RefusalError{
		Kind: flood.SpamLimited, Method: "messages.sendMessage", Chat: 5, DC: 2, Count: 20,
		Since: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Local: true, Server: tgerr.New(400, "PEER_FLOOD"),
	}
	require.EqualError(t, e, "messages.sendMessage in chat 5 on DC 2: spam_limited, refused 20× since 2030-01-02T03:04:05Z, "+
		"not sent until the guard is cleared: rpc error code 400: PEER_FLOOD")
	require.NoError(t, (&flood.RefusalError{}).Unwrap())

	// What passes two guards is counted by one.
	g := guard(t, flood.GuardOptions{Limit: 1})
	err, tripped := g.Refused(send(1), fmt.Errorf("outer: %w", e))
	require.False(t, tripped)
	require.ErrorContains(t, err, "outer")
	require.Empty(t, g.Snapshot())
}

// keep is a store for a guard: what it is told, as JSON.
type keep map[string][]byte

func (s keep) put(t testing.TB, refusals ...flood.Refusal) {
	t.Helper()
	for _, r := range refusals {
		require.LessOrEqual(t, len(r.Key()), 512)
		if len(r.At) == 0 && r.Tripped.IsZero() {
			delete(s, r.Key())
			continue
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		s[r.Key()] = text
	}
}

func (s keep) restore(t testing.TB, g *flood.Guard) {
	t.Helper()
	for key, text := range s {
		var r flood.Refusal
		require.NoError(t, json.Unmarshal(text, &r))
		require.Equal(t, key, r.Key())
		g.Restore(r)
	}
}

func TestACrashLoopDoesNotHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := keep{}
		sent := 0
		for range 100 {
			g := guard(t, flood.GuardOptions{Journal: true})
			store.restore(t, g)
			require.Empty(t, g.Changes(), "what it was told")
			if g.Check(send(1)) == nil {
				sent++
				_, _ = g.Refused(send(1), tgerr.New(401, "SESSION_REVOKED"))
			}
			store.put(t, g.Changes()...)
			require.Empty(t, g.Changes())
			time.Sleep(time.Second)
		}
		require.Equal(t, 20, sent)

		g := guard(t, flood.GuardOptions{Journal: true})
		store.restore(t, g)
		g.Passed(flood.Call{Method: "auth.signIn"})
		store.put(t, g.Changes()...)
		require.Empty(t, store, "forgotten everywhere")
	})
}

func TestCountsOfTwoProcessesAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := guard(t, flood.GuardOptions{Journal: true}), guard(t, flood.GuardOptions{Journal: true})
		for range 10 {
			refuse(t, a, send(1), 1, 400, "PEER_FLOOD")
			refuse(t, b, send(1), 1, 400, "PEER_FLOOD")
			time.Sleep(time.Second)
			b.Restore(a.Changes()...)
			b.Restore(a.Snapshot()...) // once more: the same
		}
		require.Len(t, b.Snapshot()[0].At, 10, "at the same times")
		time.Sleep(time.Second)
		for range 9 {
			refuse(t, a, send(1), 1, 400, "PEER_FLOOD")
			time.Sleep(time.Second)
		}
		b.Restore(a.Snapshot()...)
		require.Equal(t, 1, refuse(t, b, send(1), 1, 400, "PEER_FLOOD"))
		a.Restore(b.Changes()...)
		local(t, a, send(1))

		b.Clear(nil)
		a.Restore(b.Changes()...)
		require.NoError(t, a.Check(send(1)))
		require.Empty(t, a.Changes(), "a does not tell b of it again")
	})
}

func TestAClockSetWhileTheGuardWasDown(t *testing.T) {
	hand := &handClock{now: time.Unix(1e9, 0)}
	g := guard(t, flood.GuardOptions{Clock: hand})
	refuse(t, g, send(1), 10, 400, "PEER_FLOOD")
	refuse(t, g, send(1), 20, 401, "SESSION_REVOKED")
	for _, set := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		now := &handClock{now: hand.now.Add(set)}
		b := guard(t, flood.GuardOptions{Clock: now})
		b.Restore(g.Snapshot()...)
		require.Len(t, b.Snapshot(), 1, "counts start over, what has tripped stays so")
		require.Equal(t, flood.AuthGone, local(t, b, send(1)).Kind)
		require.False(t, b.Snapshot()[0].Tripped.After(now.now))
	}

	// Nor do counts stay for a day when the clock of a running one is set back.
	hand.now = hand.now.Add(-24 * time.Hour)
	require.Len(t, g.Snapshot(), 1)
}

func TestRefusalsThatNoGuardHasCountedAreIgnored(t *testing.T) {
	good := flood.Refusal{Kind: flood.SpamLimited, Method: "a.b", At: []time.Time{time.Now()}, Code: 400, Message: "PEER_FLOOD"}
	for name, spoil := range map[string]func(r *flood.Refusal){
		"no kind":             func(r *flood.Refusal) { r.Kind = 0 },
		"a kind too many":     func(r *flood.Refusal) { r.Kind = 99 },
		"no method":           func(r *flood.Refusal) { r.Method = "" },
		"a method of 1 MB":    func(r *flood.Refusal) { r.Method = strings.Repeat("x", 1<<20) },
		"a data centre":       func(r *flood.Refusal) { r.DC = 2 },
		"another message":     func(r *flood.Refusal) { r.Message = "FLOOD_WAIT_3" },
		"another code":        func(r *flood.Refusal) { r.Code = 500 },
		"a method of the key": func(r *flood.Refusal) { r.Kind, r.Code, r.Message = flood.AuthGone, 401, "SESSION_REVOKED" },
		"a ban's method":      func(r *flood.Refusal) { r.Kind, r.Code, r.Message = flood.AccountBanned, 401, "USER_DEACTIVATED" },
		"long ago":            func(r *flood.Refusal) { r.At = []time.Time{time.Now().Add(-time.Hour)} },
		"in the future":       func(r *flood.Refusal) { r.At = []time.Time{time.Now().Add(time.Hour)} },
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, flood.GuardOptions{})
			r := good
			spoil(&r)
			g.Restore(r)
			require.Empty(t, g.Snapshot())
			g.Restore(good)
			require.Len(t, g.Snapshot(), 1)
		})
	}
}

func TestAGuardIsBounded(t *testing.T) {
	g := guard(t, flood.GuardOptions{Journal: true})
	for i := range 10_000 {
		_, _ = g.Refused(flood.Call{Method: fmt.Sprint("a.m", i)}, tgerr.New(400, "PEER_FLOOD"))
	}
	require.Len(t, g.Snapshot(), 1024)
	for i := range 10_000 {
		g.Restore(flood.Refusal{Kind: flood.SpamLimited, Method: fmt.Sprint("c.m", i), Tripped: time.Now(), Code: 400, Message: "PEER_FLOOD"})
	}
	require.Len(t, g.Snapshot(), 1024)
	for range 10_000 {
		_, _ = g.Refused(flood.Call{Method: "a.m1"}, tgerr.New(400, "PEER_FLOOD"))
	}
	for _, r := range g.Snapshot() {
		require.LessOrEqual(t, len(r.At), 20)
	}
	for round := range 10 {
		g.Clear(nil)
		for i := range 1000 {
			_, _ = g.Refused(flood.Call{Method: fmt.Sprint("b.m", round, ".", i)}, tgerr.New(400, "PEER_FLOOD"))
		}
	}
	require.LessOrEqual(t, len(g.Changes()), 2048)
}

func TestAGuardUnderManyCalls(t *testing.T) {
	g := guard(t, flood.GuardOptions{Limit: 5, Journal: true})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 500 {
				call := flood.Call{Method: fmt.Sprint("a.m", i%7), DC: i % 2}
				if g.Check(call) != nil {
					g.Clear(func(r flood.Refusal) bool { return r.Method == call.Method })
				}
				switch (i + worker) % 5 {
				case 0:
					_, _ = g.Refused(call, tgerr.New(400, "PEER_FLOOD"))
				case 1:
					_, _ = g.Refused(call, tgerr.New(401, "SESSION_REVOKED"))
				case 2:
					g.Restore(g.Changes()...)
				case 3:
					g.Passed(flood.Call{Method: "auth.signIn"})
				default:
					g.Passed(call)
					g.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	g.Clear(nil)
	require.NoError(t, g.Check(flood.Call{Method: "a.m1"}))
}

func TestRefusalKindsHaveNamesOfTheirOwn(t *testing.T) {
	for k := flood.SpamLimited; k <= flood.AuthGone; k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(text))
		var back flood.RefusalKind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
	}
	_, err := flood.RefusalKind(0).MarshalText()
	require.ErrorContains(t, err, "0 is no kind of refusal")
	require.ErrorContains(t, new(flood.RefusalKind).UnmarshalText([]byte("unknown")), `unknown kind of refusal "unknown": want a name such as "spam_limited"`)
}

func FuzzGuardRestore(f *testing.F) {
	f.Add([]byte(`[{"kind":"spam_limited","method":"a.b","at":["2001-09-09T01:46:00Z","2001-09-09T01:46:00Z"],"code":400,"message":"PEER_FLOOD"}]`))
	f.Add([]byte(`[{"kind":"auth_gone","dc":2,"tripped":"9999-09-09T01:46:00Z","code":401,"message":"SESSION_REVOKED"},{"kind":"auth_gone","dc":2}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var refusals []flood.Refusal
		if json.Unmarshal(text, &refusals) != nil {
			return
		}
		hand := &handClock{now: time.Unix(1e9, 0)}
		g := guard(t, flood.GuardOptions{Clock: hand, Journal: true})
		g.Restore(refusals...)
		g.Restore(refusals...)
		for _, r := range g.Snapshot() {
			if len(r.At) == 0 || len(r.At) > 20 || r.Tripped.After(hand.now) {
				t.Fatalf("%+v", r)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			again := guard(t, flood.GuardOptions{Clock: hand})
			var back flood.Refusal
			if err := json.Unmarshal(text, &back); err != nil || len(r.Key()) > 512 {
				t.Fatal(err)
			}
			again.Restore(back)
			if s := again.Snapshot(); len(s) != 1 || s[0].Key() != r.Key() || len(s[0].At) != len(r.At) {
				t.Fatalf("%s: %+v", text, s)
			}
			call := flood.Call{Method: r.Method, DC: r.DC}
			if e, ok := errors.AsType[*flood.RefusalError](g.Check(call)); ok {
				_ = e.Error()
			}
			_, _ = g.Refused(call, tgerr.New(r.Code, r.Message))
		}
		if len(refusals) > 0 {
			g.Clear(nil)
		}
		if err := g.Check(send(1)); err != nil {
			t.Fatal(err)
		}
	})
}
