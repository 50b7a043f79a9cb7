package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// bot answers as Telegram does to one account.
func bot(id int64) *server {
	user := &tg.User{ID: id, Self: true, Bot: true}
	return &server{fill: func(output bin.Decoder) {
		switch out := output.(type) {
		case *tg.AuthAuthorizationBox:
			out.Authorization = &tg.AuthAuthorization{User: user}
		case *tg.UserClassVector:
			out.Elems = []tg.UserClass{user}
		}
	}}
}

func self(ctx context.Context, call telegram.InvokeFunc) error {
	return call(ctx, &tg.UsersGetUsersRequest{ID: []tg.InputUserClass{&tg.InputUserSelf{}}}, &tg.UserClassVector{})
}

func TestOneOptionsValueForTwoAccountsIsAnErrorAtTheSecond(t *testing.T) {
	for name, options := range map[string]func(*testing.T) invoke.Options{
		"a store": func(*testing.T) invoke.Options { return invoke.Options{Store: newDisk()} },
		"a limiter": func(t *testing.T) invoke.Options {
			limiter, err := invoke.NewLimiter(invoke.Options{})
			require.NoError(t, err)
			t.Cleanup(limiter.Close)
			return invoke.Options{Limiter: limiter}
		},
	} {
		for order, early := range map[string]bool{"both are made first": true, "one after the other": false} {
			t.Run(name+", "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := options(t)
					a, callA := choke(t, opts, bot(1))
					defer a.Close()
					var b *invoke.Middleware
					var callB telegram.InvokeFunc
					servesB := bot(2)
					if early {
						b, callB = choke(t, opts, servesB)
					}
					login := func() error {
						return callB(t.Context(), &tg.AuthImportBotAuthorizationRequest{}, &tg.AuthAuthorizationBox{})
					}
					require.NoError(t, self(t.Context(), callA))
					if !early {
						b, callB = choke(t, opts, servesB)
					}
					defer b.Close()

					err := self(t.Context(), callB)
					require.ErrorIs(t, err, invoke.ErrOtherAccount)
					require.ErrorContains(t, err, "account 1")
					require.ErrorContains(t, err, "logged in as 2: give each account a Limiter and a Store of its own")
					sent := servesB.count()
					require.ErrorIs(t, callB(t.Context(), to(7), nil), invoke.ErrOtherAccount)
					require.Equal(t, sent, servesB.count(), "nothing is sent at another's limits")
					require.ErrorIs(t, login(), invoke.ErrOtherAccount)
					require.NoError(t, callB(t.Context(), &tg.AuthLogOutRequest{}, nil))

					require.NoError(t, callA(t.Context(), to(7), nil), "the first goes on")
				})
			})
		}
	}
}

func TestTwoClientsOfOneAccountShareWhatTheyAreGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := invoke.Options{Store: newDisk()}
		for range 3 {
			m, call := choke(t, opts, bot(1))
			defer m.Close()
			require.NoError(t, self(t.Context(), call))
			require.NoError(t, call(t.Context(), to(7), nil))
		}
	})
}

func TestWhetherTheAccountIsABotIsKnownToTheNextStart(t *testing.T) {
	for _, isBot := range []bool{true, false} {
		t.Run(fmt.Sprint(isBot), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := invoke.Options{Store: newDisk()}
				for start := range 3 {
					user := &tg.User{ID: 5, Self: true, Bot: isBot}
					s := &server{fill: func(output bin.Decoder) {
						if out, ok := output.(*tg.UserClassVector); ok {
							out.Elems = []tg.UserClass{user}
						}
					}}
					m, call := choke(t, opts, s)
					require.Equal(t, start == 0, m.Limiter().NeedsSelf())
					if start == 0 {
						require.NoError(t, self(t.Context(), call))
						require.False(t, m.Limiter().NeedsSelf())
					}
					ctx := invoke.WithNoWait(t.Context())
					for range 3 {
						require.NoError(t, call(ctx, to(7), nil))
					}
					err := call(ctx, to(7), nil)
					require.Equal(t, isBot, errors.Is(err, ratelimit.ErrRejected), "the gate of a bot's private chat: %v", err)
					m.Close()
				}
			})
		})
	}
}

func TestEveryAnswerThatCarriesALoginForgetsThatTheKeyWasGone(t *testing.T) {
	user := &tg.AuthAuthorization{User: &tg.User{ID: 1}}
	for name, login := range map[string]struct {
		request bin.Encoder
		output  bin.Decoder
		mends   bool
	}{
		"code":                {&tg.AuthSignInRequest{}, &tg.AuthAuthorizationBox{Authorization: user}, true},
		"password":            {&tg.AuthCheckPasswordRequest{}, &tg.AuthAuthorizationBox{Authorization: user}, true},
		"recovery":            {&tg.AuthRecoverPasswordRequest{}, &tg.AuthAuthorizationBox{Authorization: user}, true},
		"bot":                 {&tg.AuthImportBotAuthorizationRequest{}, &tg.AuthAuthorizationBox{Authorization: user}, true},
		"token kept":          {&tg.AuthSendCodeRequest{}, &tg.AuthSentCodeBox{SentCode: &tg.AuthSentCodeSuccess{Authorization: user}}, true},
		"QR code":             {&tg.AuthExportLoginTokenRequest{}, &tg.AuthLoginTokenBox{LoginToken: &tg.AuthLoginTokenSuccess{Authorization: user}}, true},
		"QR code, moved":      {&tg.AuthImportLoginTokenRequest{}, &tg.AuthLoginTokenBox{LoginToken: &tg.AuthLoginTokenSuccess{Authorization: user}}, true},
		"export":              {&tg.AuthExportAuthorizationRequest{}, &tg.AuthExportedAuthorization{}, true},
		"QR code, not yet":    {&tg.AuthExportLoginTokenRequest{}, &tg.AuthLoginTokenBox{LoginToken: &tg.AuthLoginToken{}}, false},
		"code, not entered":   {&tg.AuthSendCodeRequest{}, &tg.AuthSentCodeBox{SentCode: &tg.AuthSentCode{}}, false},
		"server's settings":   {&tg.HelpGetConfigRequest{}, &tg.Config{}, false},
		"password's settings": {&tg.AccountGetPasswordRequest{}, &tg.AccountPassword{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				revoked := true
				s := &server{answer: func(_ int, input bin.Encoder) error {
					if _, ok := input.(*tg.MessagesSendMessageRequest); ok && revoked {
						return tgerr.New(401, "SESSION_REVOKED")
					}
					return nil
				}}
				d := newDisk()
				m, call := choke(t, invoke.Options{Store: d}, s)
				defer m.Close()
				for range 21 {
					require.ErrorIs(t, call(t.Context(), to(1), nil), flood.ErrPermanent)
					time.Sleep(time.Second)
				}
				require.Equal(t, 20, s.count())
				require.Contains(t, strings.Join(d.keys(), " "), "refusal/")
				revoked = false
				require.NoError(t, call(t.Context(), login.request, login.output))
				if !login.mends {
					require.ErrorIs(t, call(t.Context(), to(1), nil), flood.ErrPermanent)
					return
				}
				require.NotContains(t, strings.Join(d.keys(), " "), "refusal/", "nothing waits for the next call to be forgotten")
				require.NoError(t, call(t.Context(), to(1), nil))
				require.Empty(t, m.Limiter().Refusals())
			})
		})
	}
}
