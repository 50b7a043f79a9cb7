package localdc_test

import (
	"context"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/telegram/message/unpack"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/weirtg/weir/localdc"
)

func TestLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{Clock: now})
	var random int64
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		api := client.API()
		say := func(chat *localdc.Chat) error {
			random++
			return send(ctx, client, chat, "hi", random)
		}
		enforce := func(l localdc.Limits) { require.NoError(t, cloud.SetLimits(l)) }

		t.Run("Telegram's published limits", func(t *testing.T) {
			enforce(localdc.Published())
			ann, bob, team := cloud.AddUser("ann"), cloud.AddUser("bob"), cloud.AddGroup("team")
			for range 3 {
				require.NoError(t, say(ann.Chat))
			}
			requireRPC(t, say(ann.Chat), 420, "FLOOD_WAIT_1")
			require.NoError(t, say(bob.Chat), "another chat goes on")
			now.Travel(time.Second)
			require.NoError(t, say(ann.Chat))
			require.Len(t, ann.Messages(), 4, "what is flooded is not there")

			for range 19 {
				require.NoError(t, say(team))
			}
			_, err := message.NewSender(api).To(team.InputPeer()).Edit(1).Text(ctx, "an edit counts")
			require.NoError(t, err)
			requireRPC(t, say(team), 420, "FLOOD_WAIT_60")
			now.Travel(59 * time.Second)
			requireRPC(t, say(team), 420, "FLOOD_WAIT_2")
			now.Travel(2 * time.Second)
			require.NoError(t, say(team))

			now.Travel(time.Minute)
			var chats []*localdc.User
			for range 31 {
				chats = append(chats, cloud.AddUser(""))
			}
			for _, u := range chats[:30] {
				require.NoError(t, say(u.Chat))
			}
			requireRPC(t, say(chats[30].Chat), 420, "FLOOD_WAIT_1")
			requireRPC(t, say(team), 420, "FLOOD_WAIT_2")
		})

		t.Run("slow mode", func(t *testing.T) {
			enforce(localdc.Limits{})
			slow := cloud.AddGroup("slow")
			require.NoError(t, slow.SetSlowMode(30*time.Second))
			require.NoError(t, say(slow))
			now.Travel(1500 * time.Millisecond)
			requireRPC(t, say(slow), 420, "SLOWMODE_WAIT_29")
			_, err := message.NewSender(api).To(slow.InputPeer()).Edit(1).Text(ctx, "edits are free")
			require.NoError(t, err)
			require.NoError(t, say(cloud.AddGroup("other")))
			require.NoError(t, slow.SetSlowMode(0))
			require.NoError(t, say(slow))
		})

		t.Run("parts of files, in each data centre", func(t *testing.T) {
			enforce(localdc.Limits{Parts: localdc.Rate{PerSecond: 0.5, Burst: 2}})
			part := func(n int) error {
				_, err := api.UploadSaveFilePart(ctx, &tg.UploadSaveFilePartRequest{FileID: 1, FilePart: n, Bytes: make([]byte, 1024)})
				return err
			}
			require.NoError(t, part(0))
			require.NoError(t, part(1))
			requireRPC(t, part(2), 420, "FLOOD_PREMIUM_WAIT_2")
			now.Travel(2 * time.Second)
			require.NoError(t, part(2))
		})

		t.Run("a method", func(t *testing.T) {
			enforce(localdc.Limits{Methods: map[string]localdc.Rate{"contacts.resolveUsername": {PerSecond: 1.0 / 60, Burst: 1}}})
			resolve := func() error {
				_, err := api.ContactsResolveUsername(ctx, &tg.ContactsResolveUsernameRequest{Username: "nobody"})
				return err
			}
			requireRPC(t, resolve(), 400, "USERNAME_NOT_OCCUPIED")
			requireRPC(t, resolve(), 420, "FLOOD_WAIT_60")
			require.NoError(t, say(cloud.AddUser("carl").Chat))
		})

		t.Run("a method in each chat", func(t *testing.T) {
			enforce(localdc.Limits{ChatMethods: map[string]localdc.Rate{"messages.setTyping": {PerSecond: 0.1, Burst: 1}}})
			typing := func(chat *localdc.User) error {
				return message.NewSender(api).To(chat.InputPeer()).TypingAction().Typing(ctx)
			}
			erna, fred := cloud.AddUser("erna"), cloud.AddUser("fred")
			require.NoError(t, typing(erna))
			requireRPC(t, typing(erna), 420, "FLOOD_WAIT_10")
			require.NoError(t, typing(fred))
			require.NoError(t, say(erna.Chat))
		})

		t.Run("all that writes, all that reads", func(t *testing.T) {
			enforce(localdc.Limits{
				Writes: localdc.Rate{PerSecond: 0.1, Burst: 2},
				Reads:  localdc.Rate{PerSecond: 0.05, Burst: 1},
			})
			gina := cloud.AddUser("gina")
			read := func() error {
				_, err := api.MessagesGetHistory(ctx, &tg.MessagesGetHistoryRequest{Peer: gina.InputPeer(), Limit: 1})
				return err
			}
			require.NoError(t, say(gina.Chat))
			require.NoError(t, message.NewSender(api).To(gina.InputPeer()).TypingAction().Typing(ctx))
			requireRPC(t, say(gina.Chat), 420, "FLOOD_WAIT_10")
			require.NoError(t, read())
			requireRPC(t, read(), 420, "FLOOD_WAIT_20")
			_, err := api.HelpGetConfig(ctx)
			require.NoError(t, err)
		})

		t.Run("one chat's own limit", func(t *testing.T) {
			enforce(localdc.Limits{
				Chat: localdc.Rate{PerSecond: 0.1, Burst: 1}, Group: localdc.Window{Limit: 1, Period: time.Minute},
			})
			harry, ida, club := cloud.AddUser("harry"), cloud.AddUser("ida"), cloud.AddGroup("club")
			require.NoError(t, harry.SetLimit(localdc.Rate{PerSecond: 0.5, Burst: 2}))
			require.NoError(t, say(harry.Chat))
			require.NoError(t, say(harry.Chat))
			requireRPC(t, say(harry.Chat), 420, "FLOOD_WAIT_2")
			require.NoError(t, say(ida.Chat))
			requireRPC(t, say(ida.Chat), 420, "FLOOD_WAIT_10")
			now.Travel(2 * time.Second)
			require.NoError(t, harry.SetLimit(localdc.Rate{}))
			require.NoError(t, say(harry.Chat), "one token was there, and is carried over")
			requireRPC(t, say(harry.Chat), 420, "FLOOD_WAIT_10")

			require.NoError(t, club.SetWindow(localdc.Window{Limit: 2, Period: 30 * time.Second}))
			require.NoError(t, say(club))
			require.NoError(t, say(club))
			requireRPC(t, say(club), 420, "FLOOD_WAIT_30")
			now.Travel(30 * time.Second)
			require.NoError(t, club.SetLimit(localdc.Rate{PerSecond: 0.2, Burst: 1}))
			require.NoError(t, say(club))
			requireRPC(t, say(club), 420, "FLOOD_WAIT_5")
			now.Travel(5 * time.Second)
			require.NoError(t, say(club))
			now.Travel(5 * time.Second)
			requireRPC(t, say(club), 420, "FLOOD_WAIT_20")
		})

		t.Run("messages count, not calls", func(t *testing.T) {
			enforce(localdc.Limits{})
			from, to := cloud.AddUser("from"), cloud.AddGroup("to")
			var ids []int
			for range 5 {
				id, err := unpack.MessageID(message.NewSender(api).To(from.InputPeer()).Text(ctx, "m"))
				require.NoError(t, err)
				ids = append(ids, id)
			}
			enforce(localdc.Limits{Group: localdc.Window{Limit: 7, Period: time.Minute}})
			forward := func() error {
				_, err := message.NewSender(api).To(to.InputPeer()).ForwardIDs(from.InputPeer(), ids[0], ids[1:]...).Send(ctx)
				return err
			}
			require.NoError(t, forward())
			requireRPC(t, forward(), 420, "FLOOD_WAIT_60")
			require.Len(t, to.Messages(), 5)
		})

		t.Run("what is refused as wrong costs no message", func(t *testing.T) {
			enforce(localdc.Limits{Chat: localdc.Rate{PerSecond: 1, Burst: 1}})
			dora := cloud.AddUser("dora")
			requireRPC(t, send(ctx, client, dora.Chat, "", 1_000_000), 400, "MESSAGE_EMPTY")
			require.NoError(t, say(dora.Chat))
		})

		t.Run("limits that change under load", func(t *testing.T) {
			chats := []*localdc.User{cloud.AddUser(""), cloud.AddUser(""), cloud.AddUser(""), cloud.AddUser("")}
			const burst, calls = 20, 100
			limits := func(perSecond float64) localdc.Limits {
				return localdc.Limits{Account: localdc.Rate{PerSecond: perSecond, Burst: burst}, Lengthen: -1}
			}
			enforce(limits(1))
			cloud.ResetRecord()
			var g errgroup.Group
			for i, chat := range chats {
				g.Go(func() error {
					for k := range calls {
						if err := send(ctx, client, chat.Chat, "hi", int64(2_000_000+i*calls+k)); err != nil && !tgerr.Is(err, "FLOOD_WAIT") {
							return err
						}
					}
					return nil
				})
			}
			for k := range 200 {
				require.NoError(t, cloud.SetLimits(limits(float64(1+k%2))))
				require.NoError(t, chats[0].SetLimit(localdc.Rate{PerSecond: 1, Burst: 1000 + k%2}))
			}
			require.NoError(t, g.Wait())
			require.Equal(t, burst, cloud.Record().Total.Messages, "time stands still, and no change grants a token")
		})
	})
}
