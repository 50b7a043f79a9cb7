package client_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// The tests of this file are what people who run bots report, one each, over the wire.

const sendMessage = "messages.sendMessage"

// noChats turns the gates of chats off, for tests that are about others.
func noChats(limits map[classify.Category]ratelimit.Change) settings {
	return settings{limits: invoke.Options{
		RateLimits: limits, Chats: invoke.ChatLimits{Mode: invoke.ChatsNever},
	}}
}

func TestReport01AWaitIsServedOnceAndNeverAgain(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		chat := w.AddUser("report 1")
		require.NoError(t, w.Flood(localdc.Scope{Chat: chat.MarkedID()}, 3*time.Second))
		say := func() error { return send(c, ctx, chat.InputPeer(), "x") }

		done := call(say)
		waitsForFlood(t, c, 1)
		w.now.Travel(3*time.Second - 1)
		waitsForFlood(t, c, 1)
		require.Equal(t, 1, w.calls(sendMessage))
		w.now.Travel(1)
		require.NoError(t, ended(t, done), "the wait is over at its deadline, not later")

		// A call that is made long after a flood for which nobody waited.
		require.NoError(t, w.Flood(localdc.Scope{Chat: chat.MarkedID()}, time.Hour))
		require.Equal(t, time.Hour, asWait(t, say()).Wait)
		w.now.Travel(24 * time.Hour)
		require.NoError(t, ended(t, call(say)))
		require.Len(t, w.seen.of(invoke.Queued, sendMessage), 1)
		require.Empty(t, w.Record().Inside(0))
	})
}

// output is where an answer goes. It tells whether one came.
type output struct{ decoded atomic.Bool }

func (o *output) Decode(*bin.Buffer) error {
	o.decoded.Store(true)
	return nil
}

func TestReport02ACancelledCallIsNeverSent(t *testing.T) {
	limits := map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0.001).Burst(2)}
	inWorld(t, noChats(limits), func(ctx context.Context, w *world, c *client.Client) {
		chat, other := w.AddUser("report 2"), w.AddUser("other")
		raw := func(ctx context.Context, to *localdc.User, text string, out bin.Decoder) <-chan error {
			id, err := c.RandInt64()
			require.NoError(t, err)
			return call(func() error {
				return c.Invoke(ctx, &tg.MessagesSendMessageRequest{Peer: to.InputPeer(), Message: text, RandomID: id}, out)
			})
		}
		cancelled := func(to *localdc.User, waits func()) {
			t.Helper()
			var out output
			ctx, cancel := context.WithCancel(ctx)
			done := raw(ctx, to, "cancelled", &out)
			waits()
			cancel()
			require.ErrorIs(t, ended(t, done), context.Canceled)
			require.False(t, out.decoded.Load())
		}

		// While it waits for a flood,
		require.NoError(t, w.Flood(localdc.Scope{Chat: chat.MarkedID()}, 5*time.Second))
		first := raw(ctx, chat, "first", &output{})
		waitsForFlood(t, c, 1)
		before := c.Available()
		cancelled(chat, func() { waitsForFlood(t, c, 2) })
		require.Equal(t, before, c.Available(), "it cost nothing")
		w.now.Travel(5 * time.Second)
		require.NoError(t, ended(t, first))

		// in the queue for tokens, of which none is left,
		require.Less(t, c.Available()[classify.Message], 1.0)
		before = c.Available()
		cancelled(other, func() {
			eventually(t, func() bool { return c.Limiter().Stats()[classify.Message].Waiters == 1 }, "it waits for tokens")
		})
		require.Equal(t, before, c.Available())
		require.Zero(t, c.Limiter().Stats()[classify.Message].Waiters)
		w.now.Travel(time.Hour)

		// and on the wire, where it is too late not to send it.
		release, err := w.Hold(sendMessage)
		require.NoError(t, err)
		var out output
		wire, cancel := context.WithCancel(ctx)
		done := raw(wire, other, "on the wire", &out)
		eventually(t, func() bool { return w.calls(sendMessage) == 3 }, "it is on the wire")
		cancel()
		require.ErrorIs(t, ended(t, done), context.Canceled)
		release()
		require.NoError(t, ended(t, raw(ctx, other, "last", &output{})))
		require.False(t, out.decoded.Load(), "the answer came after the call had returned")

		for _, m := range append(chat.Messages(), other.Messages()...) {
			require.NotEqual(t, "cancelled", m.Message)
		}
		require.Equal(t, 4, w.calls(sendMessage), "first, twice; on the wire; last")
	})
}

func TestReport03EveryWaiterGetsAnErrorWhenTheClientStops(t *testing.T) {
	limits := map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Rate(0.001).Burst(1)}
	var all []<-chan error
	inWorld(t, settings{limits: invoke.Options{RateLimits: limits}}, func(ctx context.Context, w *world, c *client.Client) {
		flooded, full, held := w.AddUser("report 3"), w.AddUser("full"), w.AddUser("held")
		// Their contexts are not the client's: it is not those that end them.
		background := func(f func(context.Context) error) {
			all = append(all, call(func() error { return f(context.WithoutCancel(ctx)) }))
		}
		say := func(to *localdc.User) {
			background(func(ctx context.Context) error { return send(c, ctx, to.InputPeer(), "x") })
		}
		require.NoError(t, w.Flood(localdc.Scope{Chat: flooded.MarkedID()}, 5*time.Second))
		say(flooded)
		waitsForFlood(t, c, 1)
		say(flooded) // the chat's gate has room for it
		waitsForFlood(t, c, 2)
		for range 5 {
			background(func(ctx context.Context) error {
				_, err := c.API().UploadSaveFilePart(ctx, &tg.UploadSaveFilePartRequest{FileID: 1, Bytes: []byte("x")})
				return err
			})
		}
		for range 4 { // one more than the chat has room for
			say(full)
		}
		eventually(t, func() bool {
			return c.Limiter().Stats()[classify.Media].Waiters == 4 && c.Limiter().GateStats()[invoke.PrivateGate].Waiters == 1 &&
				w.calls(sendMessage) == 4
		}, "they wait for tokens of their category and of their chat")
		eventually(t, func() bool {
			through := 0
			for _, done := range all {
				through += len(done)
			}
			return through == 4
		}, "the others are through")
		release, err := w.Hold(sendMessage)
		require.NoError(t, err)
		t.Cleanup(release)
		say(held)
		eventually(t, func() bool { return w.calls(sendMessage) == 5 }, "one is on the wire")
	})
	require.Len(t, all, 12)
	failed := 0
	for _, done := range all {
		if ended(t, done) != nil {
			failed++
		}
	}
	require.Equal(t, 12-1-3, failed, "all but the file part and the three messages that were through")
}

func TestReport04FloodOfOneChatLeavesTheOthersAlone(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		flooded, slow := w.AddUser("report 4"), w.AddGroup("slow")
		require.NoError(t, w.Flood(localdc.Scope{Chat: flooded.MarkedID()}, 10*time.Second))
		require.NoError(t, slow.SetSlowMode(10*time.Second))
		require.NoError(t, send(c, ctx, slow.InputPeer(), "the one of these 10 s"))
		later := []<-chan error{
			call(func() error { return send(c, ctx, flooded.InputPeer(), "x") }),
			call(func() error { return send(c, ctx, slow.InputPeer(), "x") }),
		}
		eventually(t, func() bool { return len(c.Floods()) == 2 }, "two chats are flooded")

		// No time passes: what waited for either would wait for ever.
		for i := range 10 {
			chat := w.AddUser(fmt.Sprint("quiet ", i))
			require.NoError(t, ended(t, call(func() error { return send(c, ctx, chat.InputPeer(), "x") })))
		}
		require.NoError(t, ended(t, call(func() error { return edit(ctx, c, slow.InputPeer(), 1, "slow mode is for sending") })))

		for _, record := range c.Floods() {
			require.Equal(t, flood.Chat, record.Scope)
		}
		require.Len(t, w.Record().Floods(), 2)
		w.spend(t, time.Second, func() bool { return len(later[0])+len(later[1]) == 2 })
		require.NoError(t, <-later[0])
		require.NoError(t, <-later[1])
		require.Len(t, w.Record().Floods(), 2, "each was met once")
	})
}

const savePart = "upload.saveBigFilePart"

// stream uploads n parts side by side, as a file whose size is not known.
func stream(ctx context.Context, c *client.Client, n int) <-chan error {
	return call(func() error {
		_, err := c.Uploader().WithThreads(n).WithPartSize(1024).FromReader(ctx, "f", &zeros{left: n * 1024})
		return err
	})
}

func TestReport05OfManyFloodedPartsOneGoesFirst(t *testing.T) {
	const parts = 25
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.FailNext(savePart, 420, "FLOOD_WAIT_2", parts+1))
		release, err := w.Hold(savePart)
		require.NoError(t, err)
		done := stream(ctx, c, parts)
		eventually(t, func() bool { return w.calls(savePart) == parts }, "all parts are on the wire")
		release()

		// Twice: the one that goes first is flooded once more.
		for i := range 2 {
			until := waitsForFlood(t, c, parts).Until
			require.Equal(t, parts+i, w.calls(savePart))
			release, err = w.Hold(savePart)
			require.NoError(t, err)
			w.now.Set(until)
			eventually(t, func() bool { return w.calls(savePart) == parts+i+1 }, "one goes first")
			waitsForFlood(t, c, parts-1)
			require.Equal(t, parts+i+1, w.calls(savePart), "and the others wait for what becomes of it")
			release()
		}
		require.NoError(t, ended(t, done))
		require.Equal(t, parts+1+parts, w.calls(savePart))
	})
}

func TestReport06ADeadlineOutlivesTheProcess(t *testing.T) {
	path, w := filepath.Join(t.TempDir(), "bot.db"), startWorld(t)
	require.NoError(t, w.Flood(localdc.Scope{Method: "messages.getFullChat"}, time.Hour))
	for start := range 5 {
		file, err := boltstore.Open(path, boltstore.Options{Clock: w.now})
		require.NoError(t, err)
		s := settings{limits: invoke.Options{Store: file}}
		w.run(t, s, func(ctx context.Context, w *world, c *client.Client) {
			chat := w.AddUser("report 6")
			_, err := c.API().MessagesGetFullChat(ctx, 1)
			wait := asWait(t, err)
			if start == 0 {
				require.Equal(t, flood.OverThreshold, wait.Reason)
				require.Equal(t, 1, w.calls("messages.getFullChat"))
			} else {
				require.Equal(t, flood.KnownFlood, wait.Reason)
				require.Less(t, wait.Wait, time.Hour, "it has not begun anew")
				require.Zero(t, w.calls("messages.getFullChat"), "start %d made the wait longer", start)
			}
			require.NoError(t, send(c, ctx, chat.InputPeer(), "x"), "and nothing else is stopped")
			w.now.Travel(time.Minute)
		})
		require.NoError(t, file.Close())
	}
}

func TestReport07ALongWaitIsSaidBeforeItIsServed(t *testing.T) {
	const day = 74089 * time.Second
	core, logged := observer.New(zap.InfoLevel)
	s := settings{client: client.Options{Options: invoke.Options{Logger: zap.New(core)}}}
	inWorld(t, s, func(ctx context.Context, w *world, c *client.Client) {
		chat, other := w.AddUser("report 7"), w.AddUser("other")
		require.NoError(t, w.FailNext(sendMessage, 420, "FLOOD_WAIT_74089", 2))

		// It is above what is sat out by default.
		wait := asWait(t, ended(t, call(func() error { return send(c, ctx, chat.InputPeer(), "x") })))
		require.Equal(t, day, wait.Wait)
		require.Equal(t, flood.OverThreshold, wait.Reason)
		require.Equal(t, 1, logged.FilterMessage("Flood, given up").Len())
		w.now.Travel(2 * day)

		// Who wants to wait is told for how long.
		done := call(func() error {
			return send(c, invoke.WithThreshold(ctx, flood.Always), other.InputPeer(), "x")
		})
		waitsForFlood(t, c, 1)
		lines := logged.FilterMessage("Flood, waiting").All()
		require.Len(t, lines, 1)
		require.Equal(t, day, lines[0].ContextMap()["wait"])
		queued := w.seen.of(invoke.Queued, sendMessage)
		require.Len(t, queued, 1)
		require.Equal(t, day, queued[0].Wait)
		require.Empty(t, done)
		w.now.Travel(day)
		require.NoError(t, ended(t, done))
	})
}

func TestReport08AWindowIsNotABucket(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.SetLimits(localdc.Published()))
		group := w.AddGroup("report 8")
		waits := func() bool { return c.Limiter().GateStats()[invoke.GroupGate].Waiters == 1 }
		done := call(func() error {
			for i := range 41 {
				if err := send(c, ctx, group.InputPeer(), fmt.Sprint(i)); err != nil {
					return err
				}
			}
			return nil
		})
		for sent := 20; sent <= 40; sent += 20 {
			eventually(t, waits, "20 are through, and one waits")
			w.now.Travel(3 * time.Second) // a bucket of 20 a minute would let one through
			roundTrip(ctx, t, c)
			w.now.Travel(57*time.Second - 1)
			roundTrip(ctx, t, c)
			require.True(t, waits(), "it waits for the whole minute")
			require.Equal(t, sent, w.calls(sendMessage))
			w.now.Travel(1)
			eventually(t, func() bool { return w.calls(sendMessage) > sent }, "and not longer")
		}
		require.NoError(t, ended(t, done))
		require.Empty(t, w.Record().Floods(), "the data centre counts 20 in any minute")
	})
}

func TestReport09AThresholdHoldsOnEveryPath(t *testing.T) {
	inWorld(t, noChats(nil), func(ctx context.Context, w *world, c *client.Client) {
		chat := w.AddUser("report 9")
		pool := opened(t)(c.Pool(1))
		ways := ownTransfers(t, w, c) // those to other data centres are in TestTransfersUnderFloods
		for _, via := range []tg.Invoker{c.API().Invoker(), c, pool} {
			ways = append(ways, transfer{fmt.Sprintf("message by %T", via), sendMessage, 2, 2, 1, func(ctx context.Context) error {
				return say(ctx, tg.NewClient(via), c, chat)
			}})
		}
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) { thresholdHolds(ctx, t, w, c, way) })
		}
	})
}

func TestReport10FloodedPartsFillNoLog(t *testing.T) {
	const parts = 25
	for _, kind := range []struct {
		message string
		quiet   time.Duration // for as long as one line is enough
	}{
		{"FLOOD_WAIT_2", time.Minute},
		{"FLOOD_PREMIUM_WAIT_2", time.Hour},
	} {
		core, logged := observer.New(zap.InfoLevel)
		s := settings{client: client.Options{Options: invoke.Options{Logger: zap.New(core)}}}
		inWorld(t, s, func(ctx context.Context, w *world, c *client.Client) {
			upload := func() {
				t.Helper()
				require.NoError(t, w.FailNext(savePart, 420, kind.message, parts))
				release, err := w.Hold(savePart)
				require.NoError(t, err)
				w.ResetRecord()
				done := stream(ctx, c, parts)
				eventually(t, func() bool { return w.calls(savePart) == parts }, "all parts are on the wire")
				release()
				waitsForFlood(t, c, parts)
				w.now.Travel(2 * time.Second)
				require.NoError(t, ended(t, done))
			}
			upload()
			require.Equal(t, 1, logged.Len())
			w.now.Travel(kind.quiet - 5*time.Second)
			upload()
			require.Equal(t, 1, logged.Len(), "the same once more, before %v are over", kind.quiet)
			w.now.Travel(5 * time.Second)
			upload()
			require.Equal(t, 2, logged.Len())
			require.EqualValues(t, 2*parts-1, logged.All()[1].ContextMap()["not_logged_before"])
			require.Len(t, w.seen.of(invoke.Flooded, savePart), 3*parts, "whoever counts is told of each")
		})
	}
}

func TestReport11FileArrivesWholeThroughPremiumWaits(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		user := w.AddUser("report 11")
		pool := opened(t)(c.Pool(4))
		data := content(t, 60<<10)
		through := func(f func() error) {
			t.Helper()
			require.NoError(t, w.SetLimits(localdc.Limits{Parts: localdc.Rate{PerSecond: 1, Burst: 2}, Lengthen: -1}))
			w.ResetRecord()
			done := call(f)
			w.sitOut(t, c, func() bool { return len(done) == 1 })
			require.NoError(t, <-done)
			require.Greater(t, len(w.Record().Floods()), invoke.DefaultMaxRetries)
			w.calm(t)
		}
		for _, up := range []struct {
			method   string
			uploader *uploader.Uploader
			size     int64 // -1: not known, which makes it a large one
		}{
			{saveSmall, c.Uploader(), int64(len(data))},
			{savePart, uploader.NewUploader(tg.NewClient(pool)).WithThreads(4), -1},
		} {
			var uploaded tg.InputFileClass
			through(func() (err error) {
				uploaded, err = up.uploader.WithPartSize(4<<10).Upload(ctx, uploader.NewUpload("f", bytes.NewReader(data), up.size))
				return err
			})
			_, err := c.API().MessagesSendMedia(ctx, &tg.MessagesSendMediaRequest{
				Peer: user.InputPeer(), RandomID: rand.Int64(), Media: &tg.InputMediaUploadedDocument{File: uploaded},
			})
			require.NoError(t, err)
			messages := user.Messages()
			location := locationOf(messages[len(messages)-1])
			require.NoError(t, download{c, c, location, data, false, false}.run(ctx), "what was uploaded is what there is now")

			through(func() error { return download{c, pool, location, data, false, false}.run(ctx) })
			var back file
			through(func() error {
				_, err := c.Downloader().WithPartSize(4<<10).Download(c.FileSource(pool), location).WithThreads(4).Parallel(ctx, &back)
				return err
			})
			require.True(t, bytes.Equal(data, back.content()), "byte for byte")
			require.GreaterOrEqual(t, len(w.seen.of(invoke.Sent, up.method)), 16, "each part passes the choke point")
		}
	})
}

func TestReport12ErrorAndEventNameTheCall(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		group := w.AddGroup("report 12")
		require.NoError(t, w.FailNext(sendMessage, 420, "FLOOD_WAIT_2", 1))
		require.NoError(t, w.FailNext(sendMessage, 420, "FLOOD_WAIT_3600", 1))
		done := call(func() error { return send(c, ctx, group.InputPeer(), "x") })
		waitsForFlood(t, c, 1)
		w.now.Travel(2 * time.Second)
		err := ended(t, done)

		wait := asWait(t, err)
		require.Equal(t, sendMessage, wait.Method)
		require.Equal(t, group.MarkedID(), wait.Chat)
		require.Equal(t, 2, wait.DC)
		require.Equal(t, 2, wait.Attempts)
		require.Equal(t, "FLOOD_WAIT_3600", wait.Server.Message)
		for _, word := range []string{sendMessage, fmt.Sprint(group.MarkedID()), "DC 2", "sent 2×", "longer than the threshold"} {
			require.ErrorContains(t, err, word)
		}
		floods := w.seen.of(invoke.Flooded, sendMessage)
		require.Len(t, floods, 2)
		for i, e := range append(floods, w.seen.of(invoke.GivenUp, sendMessage)...) {
			require.Equal(t, classify.Peer(group.MarkedID()), e.Chat)
			require.Equal(t, 2, e.DC)
			if e.Kind == invoke.Flooded {
				require.Equal(t, i+1, e.Attempt)
			} else {
				require.Equal(t, err, e.Err)
			}
		}
	})
}

func TestReport13ABroadcastDoesNotMakeTheBotDeaf(t *testing.T) {
	const total = 40
	limits := map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(1).Burst(1)}
	inWorld(t, noChats(limits), func(ctx context.Context, w *world, c *client.Client) {
		asker := w.AddUser("report 13")
		broadcast := make(chan error, total)
		for i := range total {
			chat := w.AddUser(fmt.Sprint("reader ", i))
			go func() { broadcast <- send(c, invoke.WithBackground(ctx), chat.InputPeer(), "news") }()
		}
		waiters := func(n int) {
			t.Helper()
			eventually(t, func() bool { return c.Limiter().Stats()[classify.Message].Waiters == n }, "%d wait", n)
		}
		waiters(total - 1)
		answer := call(func() error { return send(c, ctx, asker.InputPeer(), "answer") })
		waiters(total)
		w.spend(t, time.Second/4, func() bool { return len(answer) == 1 && len(broadcast) == total })
		require.NoError(t, <-answer)
		for range total {
			require.NoError(t, <-broadcast)
		}
		place := slices.IndexFunc(w.Record().Calls, func(c localdc.Call) bool { return c.Chat == asker.MarkedID() })
		// It goes second or third; time passes faster here than calls arrive.
		require.Less(t, place, total/2, "it passed those that had come before it")
	})
}

func TestReport14EditsDeletesAndReactionsAreLimited(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.SetLimits(localdc.Published()))
		group, user := w.AddGroup("report 14"), w.AddUser("person")
		cost := func(category classify.Category, f func() error) error {
			t.Helper()
			before := c.Available()
			err := f()
			after := c.Available()
			require.Equal(t, before[category]-1, after[category])
			require.Equal(t, before[classify.Global]-1, after[classify.Global])
			return err
		}
		api := c.API()
		require.NoError(t, cost(classify.Message, func() error { return send(c, ctx, group.InputPeer(), "x") }))
		require.NoError(t, send(c, ctx, user.InputPeer(), "x"))
		message := user.Messages()[0].ID
		require.NoError(t, cost(classify.Admin, func() error {
			_, err := api.MessagesDeleteMessages(ctx, &tg.MessagesDeleteMessagesRequest{ID: []int{message}})
			return err
		}))
		// This data centre knows no reactions. The answer is not the point.
		_ = cost(classify.Message, func() error {
			_, err := api.MessagesSendReaction(ctx, &tg.MessagesSendReactionRequest{Peer: user.InputPeer(), MsgID: 1})
			return err
		})
		for i := range 19 {
			require.NoError(t, cost(classify.Message, func() error { return edit(ctx, c, group.InputPeer(), 1, fmt.Sprint(i)) }))
			w.now.Travel(100 * time.Millisecond) // the account's limit is not what this is about
		}
		done := call(func() error { return edit(ctx, c, group.InputPeer(), 1, "the 21st") })
		eventually(t, func() bool { return c.Limiter().GateStats()[invoke.GroupGate].Waiters == 1 }, "edits count with sends")
		w.spend(t, time.Second, func() bool { return len(done) == 1 })
		require.NoError(t, <-done)
		require.NoError(t, cost(classify.Admin, func() error {
			_, err := api.ChannelsDeleteMessages(ctx, &tg.ChannelsDeleteMessagesRequest{Channel: group.InputChannel(), ID: []int{1}})
			return err
		}))
		require.Empty(t, w.Record().Floods())

		// They are floodable like any call, and a flood of theirs is known.
		require.NoError(t, w.Flood(localdc.Scope{Method: "messages.editMessage"}, time.Hour))
		for range 2 {
			require.Equal(t, "messages.editMessage", asWait(t, edit(ctx, c, group.InputPeer(), 1, "x")).Method)
		}
		require.Len(t, w.Record().Floods(), 1)
	})
}
