package localdc_test

import (
	"context"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

// raw hides its query from the encoder's need of a decoder.
type raw struct{ bin.Encoder }

func (raw) Decode(*bin.Buffer) error { return nil }

func TestScriptAndRecord(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{Clock: now})
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		t.Run("failures to order", func(t *testing.T) {
			alice := cloud.AddUser("alice")
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

		t.Run("a delay is on the clock", func(t *testing.T) {
			bob := cloud.AddUser("bob")
			require.NoError(t, cloud.Delay("messages.sendMessage", time.Hour))
			done := make(chan error, 1)
			go func() { done <- send(ctx, client, bob.Chat, "late", 2) }()
			m, err := bob.Await(ctx, nil)
			require.NoError(t, err)
			require.EqualValues(t, now.Now().Unix(), m.Date)
			require.Empty(t, done)
			now.Travel(time.Hour)
			require.NoError(t, <-done)
			require.NoError(t, cloud.Delay("messages.sendMessage", 0))
		})

		t.Run("the record, to the field", func(t *testing.T) {
			team := cloud.AddGroup("team")
			require.NoError(t, cloud.SetLimits(localdc.Limits{Group: localdc.Window{Limit: 1, Period: time.Minute}}))
			cloud.ResetRecord()
			call := localdc.Call{
				Time: now.Now(), DC: 2, Method: "messages.sendMessage", Chat: team.MarkedID(), Messages: 1,
			}
			require.NoError(t, send(ctx, client, team, "one", 3))
			now.Travel(10 * time.Second)
			require.Error(t, send(ctx, client, team, "two", 4))
			flooded := call
			flooded.Time = call.Time.Add(10 * time.Second)
			flooded.Wait, flooded.Code, flooded.Error = 50*time.Second, 420, "FLOOD_WAIT_50"
			require.Equal(t, []localdc.Call{call, flooded}, cloud.Record().Calls)
			require.Less(t, team.MarkedID(), int64(-1_000_000_000_000))
		})

		t.Run("calls are seen through every wrapper", func(t *testing.T) {
			carol := cloud.AddUser("carol")
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
				"integrity": func(q bin.Object) bin.Object {
					return &tg.InvokeWithGooglePlayIntegrityRequest{Nonce: "n", Token: "t", Query: q}
				},
				"captcha": func(q bin.Object) bin.Object { return &tg.InvokeWithReCaptchaRequest{Token: "t", Query: q} },
			}
			require.Len(t, wrappers, 11)
			cloud.ResetRecord()
			id := int64(100)
			query := func() bin.Object {
				id++
				return raw{&tg.MessagesSendMessageRequest{Peer: carol.InputPeer(), Message: "wrapped", RandomID: id}}
			}
			for name, wrap := range wrappers {
				require.NoError(t, client.Invoke(ctx, wrap(query()), &tg.UpdatesBox{}), name)
				require.NoError(t, client.Invoke(ctx, wrap(wrap(wrap(query()))), &tg.UpdatesBox{}), name)
			}
			record := cloud.Record()
			require.Len(t, record.Methods, 1)
			require.Equal(t, 22, record.Methods["messages.sendMessage"].Messages)
			require.Equal(t, 22, record.Chats[carol.MarkedID()].Messages)

			deep := query()
			for range 100 {
				deep = wrappers["after"](deep)
			}
			requireRPC(t, client.Invoke(ctx, deep, &tg.UpdatesBox{}), 400, "INPUT_REQUEST_INVALID")
		})
	})
}
