package localdc_test

import (
	"context"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/telegram/message/unpack"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{Clock: neoClock{now}})
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
	})
}

func TestScriptedFailures(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		cloud.ResetRecord()
		const endless = "FLOOD_WAIT_99999999999999999999"
		require.NoError(t, cloud.FailNext("messages.sendMessage", 420, "FLOOD_WAIT_3600", 2))
		require.NoError(t, cloud.FailNext("messages.sendMessage", 420, endless, 1))
		require.NoError(t, cloud.FailNext("messages.sendMessage", 500, "WORKER_BUSY_TOO_LONG_RETRY", 1))
		for _, want := range []struct {
			code    int
			message string
		}{{420, "FLOOD_WAIT_3600"}, {420, "FLOOD_WAIT_3600"}, {420, endless}, {500, "WORKER_BUSY_TOO_LONG_RETRY"}} {
			requireRPC(t, send(ctx, client, alice.Chat, "hi", 1), want.code, want.message)
		}
		require.NoError(t, send(ctx, client, alice.Chat, "hi", 1), "the random id was not used up")

		record := cloud.Record()
		require.Len(t, record.Calls, 5)
		require.Equal(t, localdc.Total{Calls: 5, Messages: 1, Floods: 3, Errors: 1}, record.Total)
		require.Equal(t, record.Total, record.Methods["messages.sendMessage"])
		require.Equal(t, record.Total, record.Chats[alice.MarkedID()])
		floods := record.Floods()
		require.Len(t, floods, 3)
		require.Equal(t, endless, floods[2].Error)
		require.Equal(t, 420, floods[2].Code)
		require.Zero(t, floods[2].Wait, "no limit ordered it")
	})
}

func TestRecordTellsWhatArrived(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{
		Clock:  neoClock{now},
		Limits: localdc.Limits{Group: localdc.Window{Limit: 1, Period: time.Minute}},
	})
	team := cloud.AddGroup("team")
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		cloud.ResetRecord()
		require.NoError(t, send(ctx, client, team, "one", 1))
		now.Travel(10 * time.Second)
		require.Error(t, send(ctx, client, team, "two", 2))
		call := localdc.Call{
			Time: time.Unix(1_700_000_000, 0), DC: 2, Method: "messages.sendMessage", Chat: team.MarkedID(), Messages: 1,
		}
		flooded := call
		flooded.Time = call.Time.Add(10 * time.Second)
		flooded.Wait, flooded.Code, flooded.Error = 50*time.Second, 420, "FLOOD_WAIT_50"
		require.Equal(t, []localdc.Call{call, flooded}, cloud.Record().Calls)
		require.Less(t, team.MarkedID(), int64(-1_000_000_000_000))
	})
}

// raw hides its query from the encoder's need of a decoder.
type raw struct{ bin.Encoder }

func (raw) Decode(*bin.Buffer) error { return nil }

func TestCallsAreSeenThroughEveryWrapper(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	wrappers := map[string]func(q bin.Object) bin.Object{
		"layer":   func(q bin.Object) bin.Object { return &tg.InvokeWithLayerRequest{Layer: tg.Layer, Query: q} },
		"init":    func(q bin.Object) bin.Object { return &tg.InitConnectionRequest{Query: q} },
		"updates": func(q bin.Object) bin.Object { return &tg.InvokeWithoutUpdatesRequest{Query: q} },
		"takeout": func(q bin.Object) bin.Object { return &tg.InvokeWithTakeoutRequest{TakeoutID: 1, Query: q} },
		"range": func(q bin.Object) bin.Object {
			return &tg.InvokeWithMessagesRangeRequest{Range: tg.MessageRange{MaxID: 1}, Query: q}
		},
		"business": func(q bin.Object) bin.Object {
			return &tg.InvokeWithBusinessConnectionRequest{ConnectionID: "x", Query: q}
		},
		"after":  func(q bin.Object) bin.Object { return &tg.InvokeAfterMsgRequest{MsgID: 1, Query: q} },
		"afters": func(q bin.Object) bin.Object { return &tg.InvokeAfterMsgsRequest{MsgIDs: []int64{1, 2}, Query: q} },
		"apns": func(q bin.Object) bin.Object {
			return &tg.InvokeWithApnsSecretRequest{Nonce: "n", Secret: "s", Query: q}
		},
		"play": func(q bin.Object) bin.Object {
			return &tg.InvokeWithGooglePlayIntegrityRequest{Nonce: "n", Token: "t", Query: q}
		},
		"captchas": func(q bin.Object) bin.Object { return &tg.InvokeWithReCaptchaRequest{Token: "t", Query: q} },
	}
	require.Len(t, wrappers, 11)
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		cloud.ResetRecord()
		id := int64(0)
		query := func() bin.Object {
			id++
			return raw{&tg.MessagesSendMessageRequest{Peer: alice.InputPeer(), Message: "wrapped", RandomID: id}}
		}
		for name, wrap := range wrappers {
			var out tg.UpdatesBox
			require.NoError(t, client.Invoke(ctx, wrap(query()), &out), name)
			require.NoError(t, client.Invoke(ctx, wrap(wrap(wrap(query()))), &out), name)
		}
		record := cloud.Record()
		require.Len(t, record.Methods, 1)
		require.Equal(t, 22, record.Methods["messages.sendMessage"].Messages)
		require.Equal(t, 22, record.Chats[alice.MarkedID()].Messages)

		deep := query()
		for range 100 {
			deep = wrappers["after"](deep)
		}
		requireRPC(t, client.Invoke(ctx, deep, &tg.UpdatesBox{}), 400, "INPUT_REQUEST_INVALID")
	})
}
