package localdc_test

import (
	"context"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestFloods(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{Clock: now})
	var random int64
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		api := client.API()
		ann, bob := cloud.AddUser("ann"), cloud.AddUser("bob")
		say := func(chat *localdc.User) error {
			random++
			return send(ctx, client, chat.Chat, "hi", random)
		}
		typing := func(chat *localdc.User) error {
			return message.NewSender(api).To(chat.InputPeer()).TypingAction().Typing(ctx)
		}
		read := func(chat *localdc.User) error {
			_, err := api.MessagesGetHistory(ctx, &tg.MessagesGetHistoryRequest{Peer: chat.InputPeer(), Limit: 1})
			return err
		}
		part := func(chat *localdc.User) error {
			_, err := api.UploadSaveFilePart(ctx, &tg.UploadSaveFilePartRequest{FileID: 1, Bytes: []byte("x")})
			return err
		}
		config := func(*localdc.User) error {
			_, err := api.HelpGetConfig(ctx)
			return err
		}
		type call struct {
			do   func(*localdc.User) error
			chat *localdc.User
		}
		all := map[string]call{
			"send to ann": {say, ann}, "send to bob": {say, bob}, "type to ann": {typing, ann}, "type to bob": {typing, bob},
			"read ann": {read, ann}, "read bob": {read, bob}, "part": {part, ann}, "config": {config, ann},
		}
		t.Run("on what is in the scope and on nothing else", func(t *testing.T) {
			for _, test := range []struct {
				scope   localdc.Scope
				name    string
				want    string
				refused []string
			}{
				{
					localdc.Scope{Method: "messages.sendMessage", Chat: ann.MarkedID()}, "messages.sendMessage in 1000001",
					"FLOOD_WAIT_30", []string{"send to ann"},
				},
				{
					localdc.Scope{Method: "messages.sendMessage"}, "messages.sendMessage",
					"FLOOD_WAIT_30", []string{"send to ann", "send to bob"},
				},
				{
					localdc.Scope{Chat: bob.MarkedID()}, "everything in 1000002",
					"FLOOD_WAIT_30", []string{"send to bob", "type to bob", "read bob"},
				},
				{
					localdc.Scope{Kind: localdc.Messages}, "messages",
					"FLOOD_WAIT_30", []string{"send to ann", "send to bob"},
				},
				{
					localdc.Scope{Kind: localdc.Writes}, "writes",
					"FLOOD_WAIT_30", []string{"send to ann", "send to bob", "type to ann", "type to bob"},
				},
				{
					localdc.Scope{Kind: localdc.Reads}, "reads",
					"FLOOD_WAIT_30", []string{"read ann", "read bob"},
				},
				{localdc.Scope{Kind: localdc.Parts, DC: 2}, "parts at DC 2", "FLOOD_PREMIUM_WAIT_30", []string{"part"}},
				{localdc.Scope{Kind: localdc.Parts, DC: 4}, "parts at DC 4", "", nil},
				{localdc.Scope{Method: "help.getConfig"}, "help.getConfig", "FLOOD_WAIT_30", []string{"config"}},
				{
					localdc.Scope{}, "everything", "FLOOD_WAIT_30",
					[]string{"send to ann", "send to bob", "type to ann", "type to bob", "read ann", "read bob", "part"},
				},
			} {
				require.Equal(t, test.name, test.scope.String())
				for name, call := range all {
					require.NoError(t, cloud.Flood(test.scope, 30*time.Second))
					err := call.do(call.chat)
					flooded := false
					for _, refused := range test.refused {
						flooded = flooded || refused == name
					}
					if flooded {
						requireRPC(t, err, 420, test.want)
					} else {
						require.NoError(t, err, "%s, flood of %v", name, test.scope)
					}
				}
				require.NoError(t, cloud.Flood(test.scope, 0), "it is ended")
				for _, call := range all {
					require.NoError(t, call.do(call.chat))
				}
			}
		})

		t.Run("told once, lengthened inside, over in time", func(t *testing.T) {
			require.NoError(t, cloud.Flood(localdc.Scope{Method: "messages.sendMessage"}, 1500*time.Millisecond))
			cloud.ResetRecord()
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_2") // 1.5 s are left, and it could not know
			now.Travel(time.Second)
			requireRPC(t, say(bob), 420, "FLOOD_WAIT_2") // 0.5 s are left, and 1 s comes on top
			require.NoError(t, read(bob))
			now.Travel(1500 * time.Millisecond)
			require.NoError(t, say(bob))

			record := cloud.Record()
			require.Len(t, record.Floods(), 2)
			require.Equal(t, 2*time.Second, record.Floods()[0].Wait)
			inside := record.Inside(0)
			require.Len(t, inside, 1)
			require.Equal(t, bob.MarkedID(), inside[0].Chat)
			require.Equal(t, time.Second, inside[0].Since)
			require.Len(t, record.Inside(time.Second), 1)
			require.Empty(t, record.Inside(time.Second+1))
		})

		t.Run("inside a limit's flood", func(t *testing.T) {
			require.NoError(t, cloud.SetLimits(localdc.Limits{Chat: localdc.Rate{PerSecond: 0.1, Burst: 1}}))
			cloud.ResetRecord()
			require.NoError(t, say(ann))
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_10")
			require.Empty(t, cloud.Record().Inside(0))
			require.NoError(t, cloud.SetLimits(localdc.Limits{Chat: localdc.Rate{PerSecond: 1000, Burst: 1000}}))
			now.Travel(9 * time.Second)
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_2") // its deadline stands, lengthened by 1 s
			require.Len(t, cloud.Record().Inside(9*time.Second), 1)
			now.Travel(2 * time.Second)
			require.NoError(t, say(ann))
			require.NoError(t, cloud.SetLimits(localdc.Limits{}))
		})

		t.Run("a longer flood is the one that is told", func(t *testing.T) {
			require.NoError(t, cloud.Flood(localdc.Scope{Chat: ann.MarkedID()}, 10*time.Second))
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_10")
			require.NoError(t, cloud.Flood(localdc.Scope{Kind: localdc.Writes}, 20*time.Second))
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_20") // inside the first, but the second is news
			requireRPC(t, say(ann), 420, "FLOOD_WAIT_21")
			now.Travel(21 * time.Second)
			require.NoError(t, say(ann))
		})

		t.Run("failures on a scope", func(t *testing.T) {
			cloud.ResetRecord()
			friend, stranger := cloud.AddUser("friend"), cloud.AddUser("stranger")
			_, err := cloud.Fail(localdc.Scope{Method: "messages.sendMessage", Chat: friend.MarkedID()}, 420, "FLOOD_WAIT_5", 2)
			require.NoError(t, err)
			for range 2 {
				requireRPC(t, say(friend), 420, "FLOOD_WAIT_5")
				require.NoError(t, say(stranger), "another chat goes on")
			}
			require.NoError(t, say(friend))
			require.Empty(t, cloud.Record().Inside(0), "nothing stands")

			allow, err := cloud.Fail(localdc.Scope{Kind: localdc.Messages, Chat: stranger.MarkedID()}, 400, "PEER_FLOOD", localdc.Forever)
			require.NoError(t, err)
			for range 30 {
				requireRPC(t, say(stranger), 400, "PEER_FLOOD")
			}
			require.NoError(t, say(friend))
			allow()
			allow() // once more does nothing
			require.NoError(t, say(stranger))

			thaw, err := cloud.Fail(localdc.Scope{}, 420, "FROZEN_METHOD_INVALID", localdc.Forever)
			require.NoError(t, err)
			_, err = client.Self(ctx)
			requireRPC(t, err, 420, "FROZEN_METHOD_INVALID")
			_, err = client.API().HelpGetConfig(ctx)
			require.NoError(t, err, "what needs no login goes on")
			thaw()
			_, err = client.Self(ctx)
			require.NoError(t, err)
		})

		t.Run("differences are whole after a flood", func(t *testing.T) {
			alice, team := cloud.AddUser("alice"), cloud.AddGroup("team")
			api := client.API()
			before, err := api.UpdatesGetState(ctx)
			require.NoError(t, err)
			calls := map[string]func() (int, error){
				"updates.getState": func() (int, error) {
					state, err := api.UpdatesGetState(ctx)
					if err != nil {
						return 0, err
					}
					return state.Pts - before.Pts, nil
				},
				"updates.getDifference": func() (int, error) {
					diff, err := api.UpdatesGetDifference(ctx, &tg.UpdatesGetDifferenceRequest{Pts: before.Pts, Date: before.Date})
					if err != nil {
						return 0, err
					}
					return len(diff.(*tg.UpdatesDifference).NewMessages), nil
				},
				"updates.getChannelDifference": func() (int, error) {
					diff, err := api.UpdatesGetChannelDifference(ctx, &tg.UpdatesGetChannelDifferenceRequest{
						Channel: team.InputChannel(), Filter: &tg.ChannelMessagesFilterEmpty{}, Pts: 1, Limit: 100,
					})
					if err != nil {
						return 0, err
					}
					return len(diff.(*tg.UpdatesChannelDifference).NewMessages), nil
				},
			}
			written := 0
			write := func() {
				alice.Send("hello")
				_, err := alice.SendTo(team, "hello")
				require.NoError(t, err)
				written++
			}
			for method, call := range calls {
				write()
				require.NoError(t, cloud.FailNext(method, 420, "FLOOD_WAIT_3", 1))
				_, err := call()
				requireRPC(t, err, 420, "FLOOD_WAIT_3")
				write()

				require.NoError(t, cloud.SetLimits(localdc.Limits{Methods: map[string]localdc.Rate{method: {PerSecond: 0.1, Burst: 1}}}))
				got, err := call()
				require.NoError(t, err)
				require.Equal(t, written, got, method)
				write()
				_, err = call()
				requireRPC(t, err, 420, "FLOOD_WAIT_10")

				require.NoError(t, cloud.SetLimits(localdc.Limits{Reads: localdc.Rate{PerSecond: 0.5, Burst: 1}}))
				got, err = call()
				require.NoError(t, err)
				require.Equal(t, written, got, method)
				_, err = call()
				requireRPC(t, err, 420, "FLOOD_WAIT_2")
				now.Travel(2 * time.Second)
				got, err = call()
				require.NoError(t, err)
				require.Equal(t, written, got, method)
				require.NoError(t, cloud.SetLimits(localdc.Limits{}))
			}
		})
	})
}
