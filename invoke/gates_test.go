package invoke_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

func toGroup(id int64) *tg.MessagesSendMessageRequest {
	return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerChannel{ChannelID: id}, Message: "hello"}
}

var chatsAlways = invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}}

func TestPrivateChatTakesOneASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, chatsAlways, &server{})
		start := time.Now()
		for range 6 {
			require.NoError(t, call(t.Context(), to(1), nil))
		}
		require.InDelta(t, 3, time.Since(start).Seconds(), 1e-6, "a burst of 3, then one a second")
		require.NoError(t, call(t.Context(), to(2), nil))
		require.InDelta(t, 3, time.Since(start).Seconds(), 1e-6, "another chat does not wait")
		require.Equal(t, 2, m.Limiter().GateStats()[invoke.PrivateGate].Live)
		require.Zero(t, m.Limiter().GateStats()[invoke.GroupGate].Live)
	})
}

func TestGroupTakesTwentyInAnyMinute(t *testing.T) {
	for name, request := range map[string]func(i int) bin.Encoder{
		"supergroup or channel": func(int) bin.Encoder { return toGroup(7) },
		"basic group": func(int) bin.Encoder {
			return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerChat{ChatID: 7}}
		},
		"known from a message": func(int) bin.Encoder {
			return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerChannelFromMessage{ChannelID: 7, Peer: &tg.InputPeerSelf{}}}
		},
		"wrapped": func(int) bin.Encoder {
			return &tg.InvokeWithLayerRequest{Query: &tg.InvokeWithoutUpdatesRequest{Query: toGroup(7)}}
		},
		"sent, edited, forwarded": func(i int) bin.Encoder {
			peer := &tg.InputPeerChannel{ChannelID: 7}
			return []bin.Encoder{
				&tg.MessagesSendMessageRequest{Peer: peer},
				&tg.MessagesEditMessageRequest{Peer: peer},
				&tg.MessagesForwardMessagesRequest{ToPeer: peer, FromPeer: &tg.InputPeerUser{UserID: 1}, ID: []int{1}},
				&tg.MessagesSendMessageRequest{Peer: peer},
			}[i%4]
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, call := choke(t, chatsAlways, &server{})
				var times []time.Duration
				start := time.Now()
				for i := range 45 {
					require.NoError(t, call(t.Context(), request(i), nil))
					times = append(times, time.Since(start))
				}
				for i := 20; i < len(times); i++ {
					require.GreaterOrEqual(t, times[i]-times[i-20], time.Minute)
				}
				require.Less(t, times[44], 2*time.Minute+time.Second)
			})
		})
	}
}

func TestAlbumsAndForwardsCountByTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, chatsAlways, &server{})
		group := &tg.InputPeerChannel{ChannelID: 7}
		start := time.Now()
		require.NoError(t, call(t.Context(), &tg.MessagesSendMultiMediaRequest{Peer: group, MultiMedia: make([]tg.InputSingleMedia, 10)}, nil))
		require.NoError(t, call(t.Context(), &tg.MessagesForwardMessagesRequest{ToPeer: group, ID: make([]int, 10)}, nil))
		require.Zero(t, time.Since(start))
		require.NoError(t, call(t.Context(), toGroup(7), nil))
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, call(t.Context(), &tg.MessagesForwardMessagesRequest{ToPeer: &tg.InputPeerUser{UserID: 5}, ID: make([]int, 100)}, nil))
		require.Equal(t, time.Minute, time.Since(start), "more than a chat holds passes alone")
	})
}

func TestOnlyMessagesCountInAChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, chatsAlways, &server{})
		peer := &tg.InputPeerUser{UserID: 1}
		start := time.Now()
		for range 4 {
			for _, request := range []bin.Encoder{
				&tg.MessagesSetTypingRequest{Peer: peer, Action: &tg.SendMessageTypingAction{}},
				&tg.MessagesGetHistoryRequest{Peer: peer},
				&tg.MessagesSendReactionRequest{Peer: peer},
				&tg.MessagesUpdatePinnedMessageRequest{Peer: peer},
				&tg.ChannelsDeleteMessagesRequest{Channel: &tg.InputChannel{ChannelID: 7}},
			} {
				require.NoError(t, call(t.Context(), request, nil))
			}
		}
		require.Zero(t, time.Since(start))
		require.Zero(t, m.Limiter().GateStats()[invoke.PrivateGate].Live)
	})
}

func TestChatGatesAreForBotsUnlessSet(t *testing.T) {
	self := func(bot bool) *server {
		return &server{fill: func(output bin.Decoder) {
			switch out := output.(type) {
			case *tg.AuthAuthorizationBox:
				out.Authorization = &tg.AuthAuthorization{User: &tg.User{ID: 1, Self: true, Bot: bot}}
			case *tg.UserClassVector:
				out.Elems = []tg.UserClass{&tg.User{ID: 2, Bot: !bot}, &tg.User{ID: 1, Self: true, Bot: bot}}
			}
		}}
	}
	for _, tt := range []struct {
		name    string
		mode    invoke.ChatMode
		bot     bool
		limited bool
	}{
		{"bot", invoke.ChatsOfBots, true, true},
		{"user", invoke.ChatsOfBots, false, false},
		{"user, always", invoke.ChatsAlways, false, true},
		{"bot, never", invoke.ChatsNever, true, false},
	} {
		for _, how := range []string{"login", "kept session"} {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, call := choke(t, invoke.Options{Chats: invoke.ChatLimits{Mode: tt.mode}}, self(tt.bot))
					api := tg.NewClient(call)
					var err error
					if how == "login" {
						_, err = api.AuthImportBotAuthorization(t.Context(), &tg.AuthImportBotAuthorizationRequest{})
					} else {
						_, err = api.UsersGetUsers(t.Context(), []tg.InputUserClass{&tg.InputUserSelf{}})
					}
					require.NoError(t, err)
					require.NoError(t, call(t.Context(), to(1), nil))
					live := m.Limiter().GateStats()[invoke.PrivateGate].Live
					require.Equal(t, tt.limited, live == 1)
				})
			})
		}
	}
}

func TestPaidBroadcastHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, chatsAlways, &server{})
		start := time.Now()
		for range 2100 {
			require.NoError(t, call(t.Context(), &tg.MessagesSendMessageRequest{
				Peer: &tg.InputPeerUser{UserID: 1}, AllowPaidFloodskip: true,
			}, nil))
		}
		require.InDelta(t, 2, time.Since(start).Seconds(), 1e-6, "1000 a second, burst 100, to one chat")
		require.Zero(t, m.Limiter().Congestion())
	})
}

func TestResolvePhoneKeepsToOneInThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, invoke.Options{}, &server{})
		start := time.Now()
		for range 3 {
			require.NoError(t, call(t.Context(), &tg.ContactsResolvePhoneRequest{}, nil))
		}
		require.InDelta(t, 6, time.Since(start).Seconds(), 1e-6)
	})
}

func TestGateOfTheProgramsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m, call := choke(t, invoke.Options{Gates: []invoke.KeyedGate{{
			Name: "search",
			Rule: ratelimit.Window{Limit: 2, Period: time.Minute},
			Key: func(req bin.Encoder, call classify.Call) string {
				if r, ok := req.(*tg.MessagesSearchRequest); ok {
					return strconv.Itoa(len(r.Q)) + call.Peer.String()
				}
				return ""
			},
			MaxWaiters: 1,
		}}}, s)
		search := func(q string) error {
			return call(t.Context(), &tg.InvokeWithLayerRequest{Query: &tg.MessagesSearchRequest{Peer: &tg.InputPeerUser{UserID: 1}, Q: q}}, nil)
		}
		start := time.Now()
		require.NoError(t, search("a"))
		require.NoError(t, search("a"))
		require.NoError(t, search("bb"), "another key")
		require.NoError(t, call(t.Context(), to(1), nil), "not concerned")
		require.Zero(t, time.Since(start))

		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, search("a")) })
		synctest.Wait()
		require.ErrorIs(t, search("a"), ratelimit.ErrQueueFull)
		stats := m.Limiter().GateStats()["search"]
		require.Equal(t, 1, stats.Waiters)
		wg.Wait()
		require.Equal(t, time.Minute, time.Since(start))

		require.NoError(t, m.Limiter().UpdateGates(map[string]ratelimit.Change{
			"search": ratelimit.To(ratelimit.Window{Limit: 100, Period: time.Minute}),
		}))
		for range 90 {
			require.NoError(t, search("a"))
		}
		require.Error(t, m.Limiter().UpdateGates(map[string]ratelimit.Change{"nobody": ratelimit.Rate(1)}))
		require.Error(t, m.Limiter().UpdateGates(map[string]ratelimit.Change{"search": ratelimit.Rate(1)}))
	})
}

func TestKeyFunctionThatPanicsLeavesNothingTaken(t *testing.T) {
	s := &server{}
	m, call := choke(t, invoke.Options{Gates: []invoke.KeyedGate{{
		Name: "broken", Rule: ratelimit.Limit{Rate: 1, Burst: 1},
		Key: func(bin.Encoder, classify.Call) string { panic("broken") },
	}}}, s)
	require.PanicsWithValue(t, "broken", func() { _ = call(t.Context(), to(1), nil) })
	require.Zero(t, m.Limiter().Congestion())
	require.Zero(t, s.count())
}

func TestBadGatesAreNamedAllAtOnce(t *testing.T) {
	key := func(bin.Encoder, classify.Call) string { return "" }
	_, err := invoke.NewLimiter(invoke.Options{
		MaxWaiters: -1,
		Chats:      invoke.ChatLimits{Mode: 9, Private: ratelimit.Rate(-1), Group: ratelimit.To(ratelimit.Window{Limit: 3})},
		Gates: []invoke.KeyedGate{
			{Name: "", Rule: ratelimit.Limit{}, Key: key},
			{Name: "message", Rule: ratelimit.Limit{}, Key: key},
			{Name: "private", Rule: ratelimit.Limit{}, Key: key},
			{Name: "nokey", Rule: ratelimit.Limit{}},
			{Name: "norule", Key: key},
			{Name: "noburst", Rule: ratelimit.Limit{Rate: 1}, Key: key},
			{Name: "bad", Rule: ratelimit.Window{Limit: 1}, Key: key},
		},
	})
	for _, want := range []string{
		"MaxWaiters is -1", "mode is 9", "private.rate is -1", "group.period is 0", "there are 7: want at most 5",
		`gates[0]: name is ""`, `gates[1]: name is "message"`, `gates[2]: name is "private"`, "nokey has no Key", "norule has no Rule", "noburst has the Rule 1/s burst 0, which lets nothing through",
		"bad.period is 0",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestInteractiveCallPassesABroadcastInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, chatsAlways, &server{})
		var wg sync.WaitGroup
		for chat := range int64(300) {
			wg.Go(func() { assert.NoError(t, call(invoke.WithBackground(t.Context()), to(chat+10), nil)) })
		}
		time.Sleep(5 * time.Second)
		for range 5 {
			start := time.Now()
			require.NoError(t, call(t.Context(), to(1), nil))
			require.LessOrEqual(t, time.Since(start), 50*time.Millisecond)
			time.Sleep(time.Second)
		}
		wg.Wait()
	})
}

func TestPermitLeavesTheChatGateToTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, chatsAlways, &server{})
		for range 3 {
			require.NoError(t, call(t.Context(), to(1), nil))
		}
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, call(invoke.WithPermit(t.Context(), permit), to(1), nil))
		require.InDelta(t, 1, time.Since(start).Seconds(), 1e-6)
	})
}

func TestPermitOfACallThatIsNotSentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, call := choke(t, chatsAlways, &server{})
		for range 3 {
			require.NoError(t, call(t.Context(), to(1), nil))
		}
		before := m.Limiter().Available()[classify.Message]
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		ctx := invoke.WithNoWait(invoke.WithPermit(t.Context(), permit))
		require.ErrorIs(t, call(ctx, to(1), nil), ratelimit.ErrRejected)
		permit.Return()
		require.Equal(t, before, m.Limiter().Available()[classify.Message], "once, not twice")
	})
}

func TestNamingOnlyTheRateOfAChatKeepsItsBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := choke(t, invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways, Private: ratelimit.Rate(0.5)}}, &server{})
		start := time.Now()
		for range 4 {
			require.NoError(t, call(t.Context(), to(1), nil))
		}
		require.InDelta(t, 2, time.Since(start).Seconds(), 1e-6)
	})
}

func TestCallThatGoesFirstLetsOthersGoWhileItWaitsForItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int, _ bin.Encoder) error {
			if n == 4 || n == 5 { // two chats are flooded: it is the method's
				return tgerr.New(420, "FLOOD_WAIT_2")
			}
			return nil
		}}
		_, call := choke(t, invoke.Options{Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways, Private: ratelimit.Rate(0.01)}}, s)
		for range 3 {
			require.NoError(t, call(t.Context(), to(1), nil))
		}
		for chat := range int64(2) {
			requireWait(t, call(invoke.WithNoWait(t.Context()), to(chat+10), nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		slow.Go(func() { assert.ErrorIs(t, call(ctx, to(1), nil), context.Canceled) })
		synctest.Wait() // the first to go, and its chat has no token for a long time
		start := time.Now()
		var wg sync.WaitGroup
		for chat := range int64(50) {
			wg.Go(func() { assert.NoError(t, call(t.Context(), to(chat+100), nil)) })
		}
		wg.Wait()
		require.Less(t, time.Since(start), 10*time.Second)
		cancel()
		slow.Wait()
	})
}

func TestWindowForACategoryIsRefused(t *testing.T) {
	_, err := invoke.NewLimiter(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{
		classify.Message: ratelimit.To(ratelimit.Window{Limit: 20, Period: time.Minute}),
		classify.Media:   ratelimit.Rate(1).Inherit(99),
	}})
	require.ErrorContains(t, err, "message: the change does not fit")
	require.ErrorContains(t, err, "media: the change does not fit")
}

func TestClosedLimiterRefusesEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_9")
		m, call := choke(t, invoke.Options{}, s)
		permit, err := m.Limiter().TryAcquire(classify.Message)
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- call(t.Context(), to(1), nil) }()
		synctest.Wait()
		start := time.Now()
		m.Limiter().Close()
		require.ErrorIs(t, <-done, invoke.ErrClosed, "it sat out a flood")
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, call(t.Context(), &tg.UploadSaveFilePartRequest{FilePart: 3}, nil), invoke.ErrClosed)
		require.ErrorIs(t, call(invoke.WithPermit(t.Context(), permit), to(2), nil), invoke.ErrClosed)
		require.Equal(t, 1, s.count())
	})
}

func TestFloodOfALoginIsKnownWhenTheDataCentreIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := floods(1, "FLOOD_WAIT_2700")
		m, call := choke(t, invoke.Options{}, s)
		login := &tg.AuthImportBotAuthorizationRequest{}
		requireWait(t, call(t.Context(), login, nil))
		m.Limiter().SetDC(2)
		require.Equal(t, 2, requireWait(t, call(t.Context(), login, nil)).DC)
		requireWait(t, m.HandleDC(2, s)(t.Context(), login, nil))
		require.Equal(t, 1, s.count())
		require.Equal(t, 2, m.Limiter().Floods()[0].DC)
		require.NoError(t, m.HandleDC(4, s)(t.Context(), login, nil), "another data centre has floods of its own")
	})
}

func TestCloseFromAnObserverStopsTheCall(t *testing.T) {
	for _, kind := range []invoke.EventKind{invoke.Queued, invoke.Admitted} {
		s := &server{}
		var m *invoke.Middleware
		end := false
		m, call := choke(t, invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1000).Burst(1)},
			Observer: invoke.ObserverFunc(func(e invoke.Event) {
				if end && e.Kind == kind {
					m.Close()
				}
			}),
		}, s)
		require.NoError(t, call(t.Context(), to(1), nil))
		end = true
		require.ErrorIs(t, call(t.Context(), to(1), nil), invoke.ErrClosed, "%v", kind)
		require.Equal(t, 1, s.count())
	}
}

func TestTypedNilOutputHarmsNobody(t *testing.T) {
	_, call := choke(t, invoke.Options{}, &server{})
	require.NoError(t, call(t.Context(), to(1), (*tg.AuthAuthorizationBox)(nil)))
	require.NoError(t, call(t.Context(), to(1), (*tg.UserClassVector)(nil)))
}
