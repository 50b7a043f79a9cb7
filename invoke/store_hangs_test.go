package invoke_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/invoke"
)

// Whatever the answer to a call changes about what is to be kept, the call waits for a store
// that hangs no longer than its context lasts. What it changed is saved when the store is
// back.
func TestCallThatIsCancelledWhileTheStoreHangsReturnsAtOnce(t *testing.T) {
	type test struct {
		code    int
		answer  string // an error of Telegram's
		before  func(*testing.T, *server, telegram.InvokeFunc)
		request bin.Encoder
		output  bin.Decoder
		saved   []string
	}
	refused := func(n, code int, message string, request bin.Encoder) func(*testing.T, *server, telegram.InvokeFunc) {
		return func(t *testing.T, s *server, call telegram.InvokeFunc) {
			s.answer = func(int, bin.Encoder) error { return tgerr.New(code, message) }
			for range n {
				require.Error(t, call(t.Context(), request, nil))
			}
			s.answer = func(int, bin.Encoder) error { return nil }
			time.Sleep(time.Second)
		}
	}
	for name, test := range map[string]test{
		"a flood that is sat out": {
			code: 420, answer: "FLOOD_WAIT_9", request: to(1), saved: []string{"flood/0/chat/own/1/false/messages.sendMessage"},
		},
		"a flood that is not": {
			code: 420, answer: "FLOOD_WAIT_3600", request: to(1), saved: []string{"flood/0/chat/own/1/false/messages.sendMessage"},
		},
		"a flood that teaches a limit": {
			code: 420, answer: "FLOOD_WAIT_30", request: resolve(), saved: []string{"flood/0/method/own/0/false/contacts.resolveUsername", "rate/query"},
		},
		"the last of too many refusals": {
			before: refused(19, 400, "PEER_FLOOD", to(1)),
			code:   400, answer: "PEER_FLOOD", request: to(1), saved: []string{"refusal/spam_limited/0/messages.sendMessage"},
		},
		"an answer that shows the account": {
			request: &tg.UsersGetUsersRequest{ID: []tg.InputUserClass{&tg.InputUserSelf{}}}, output: &tg.UserClassVector{},
			saved: []string{"account"},
		},
		"a login that clears refusals": {
			before: refused(20, 401, "AUTH_KEY_UNREGISTERED", resolve()), request: &tg.AuthImportBotAuthorizationRequest{}, output: &tg.AuthAuthorizationBox{},
			saved: []string{"account"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s := &stuck{disk: newDisk()}, bot(1)
				limiter := newLimiter(t, invoke.Options{Store: d, Chats: invoke.ChatLimits{Mode: invoke.ChatsNever}})
				_, call := choke(t, invoke.Options{Limiter: limiter}, s)
				if test.before != nil {
					test.before(t, s, call)
				}
				if test.answer != "" {
					s.answer = func(int, bin.Encoder) error { return tgerr.New(test.code, test.answer) }
				}
				d.set(true, false)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				start := time.Now()
				err := call(ctx, test.request, test.output)
				if test.answer != "" {
					require.Error(t, err)
				}
				require.Equal(t, 100*time.Millisecond, time.Since(start))
				time.Sleep(time.Second)
				d.set(false, false)
				limiter.Close()
				require.Equal(t, test.saved, d.keys())
			})
		})
	}
}
