package localdc_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestBotAnswersScriptedUsers(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice, team, news := cloud.AddUser("alice"), cloud.AddGroup("team"), cloud.AddChannel("news")
	small := cloud.AddBasicGroup("small")

	dispatcher := tg.NewUpdateDispatcher()
	manager := updates.New(updates.Config{Handler: dispatcher})
	connect(t, cloud, func(o *telegram.Options) { o.UpdateHandler = manager }, func(ctx context.Context, client *telegram.Client) {
		api := client.API()
		sender := message.NewSender(api)
		dispatcher.OnNewMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewMessage) error {
			if m, ok := u.Message.(*tg.Message); ok && !m.Out {
				_, err := sender.Reply(e, u).Text(ctx, "you said "+m.Message)
				return err
			}
			return nil
		})
		dispatcher.OnNewChannelMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewChannelMessage) error {
			if m, ok := u.Message.(*tg.Message); ok && !m.Out {
				_, err := sender.Reply(e, u).Text(ctx, "you said "+m.Message)
				return err
			}
			return nil
		})
		dispatcher.OnBotCallbackQuery(func(ctx context.Context, e tg.Entities, u *tg.UpdateBotCallbackQuery) error {
			_, err := api.MessagesSetBotCallbackAnswer(ctx, &tg.MessagesSetBotCallbackAnswerRequest{
				QueryID: u.QueryID, Message: "pressed " + string(u.Data),
			})
			return err
		})
		_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		self, err := client.Self(ctx)
		require.NoError(t, err)
		started := make(chan struct{})
		stopped := make(chan struct{})
		managed, stop := context.WithCancel(ctx)
		go func() {
			defer close(stopped)
			_ = manager.Run(managed, api, self.ID, updates.AuthOptions{IsBot: true, OnStart: func(context.Context) { close(started) }})
		}()
		defer func() { stop(); <-stopped }()
		<-started

		answered := func(chat *localdc.Chat, text string) {
			t.Helper()
			m, err := chat.Await(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "you said "+text, m.Message)
		}
		for i := range 3 {
			text := fmt.Sprint("hello ", i)
			alice.Send(text)
			answered(alice.Chat, text)
			for _, chat := range []*localdc.Chat{small, team, news} {
				_, err := alice.SendTo(chat, text)
				require.NoError(t, err)
				answered(chat, text)
			}
		}

		// What is said while the bot is cut off arrives when it is back.
		cloud.Cut()
		alice.Send("are you there?")
		answered(alice.Chat, "are you there?")

		query, err := alice.Press(1, []byte("yes"))
		require.NoError(t, err)
		answer, err := alice.Answer(ctx, query)
		require.NoError(t, err)
		require.Equal(t, "pressed yes", answer)
		_, err = api.MessagesSetBotCallbackAnswer(ctx, &tg.MessagesSetBotCallbackAnswerRequest{QueryID: query})
		requireRPC(t, err, 400, "QUERY_ID_INVALID")
		_, err = alice.Press(1<<20, nil)
		require.ErrorContains(t, err, "no message 1048576")
	})
}

func TestUpdatesReachEverySessionOnce(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")

	var mu sync.Mutex
	var got []string
	all := make(chan struct{})
	handler := telegram.UpdateHandlerFunc(func(_ context.Context, u tg.UpdatesClass) error {
		mu.Lock()
		defer mu.Unlock()
		for _, one := range u.(*tg.Updates).Updates {
			if m, ok := one.(*tg.UpdateNewMessage); ok {
				got = append(got, m.Message.(*tg.Message).Message)
			}
		}
		if len(got) == 20 {
			close(all)
		}
		return nil
	})
	storage := &session.StorageMemory{}
	listen := func(o *telegram.Options) { o.UpdateHandler, o.SessionStorage = handler, storage }
	connect(t, cloud, listen, func(ctx context.Context, listener *telegram.Client) {
		_, err := listener.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		pool, err := listener.Pool(1) // its session wants no updates
		require.NoError(t, err)
		defer func() { require.NoError(t, pool.Close()) }()
		_, err = tg.NewClient(pool).UpdatesGetState(ctx)
		require.NoError(t, err)

		// The same account once more: another session of the same key.
		connect(t, cloud, func(o *telegram.Options) { o.SessionStorage = storage }, func(ctx context.Context, client *telegram.Client) {
			for i := range int64(20) {
				require.NoError(t, send(ctx, client, alice.Chat, fmt.Sprintf("%02d", i), i))
			}
		})
		<-all
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(got) // the client handles them side by side
		require.Len(t, slices.Compact(got), 20)
	})
}
