package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message/peer"
	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/telegram/updates/hook"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

// perPerson is how many messages of the broadcast each person gets.
const perPerson = 5

const answerPrefix = "answer to "

func cutAnswer(text string) (string, bool) { return strings.CutPrefix(text, answerPrefix) }

// bot answers every message once, from the handler itself, and sends a broadcast.
type bot struct {
	client   *client.Client
	manager  *updates.Manager
	handlers *dispatch.Dispatcher // behind the manager
	audience []tg.InputPeerClass
	back     chan struct{} // has a value when the connection is back
	started  chan struct{}
}

func newBot(opts telegram.Options, storage session.Storage, audience []tg.InputPeerClass) (*bot, error) {
	b := &bot{audience: audience, back: make(chan struct{}, 1), started: make(chan struct{})}
	handler := tg.NewUpdateDispatcher()
	handler.OnNewMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewMessage) error {
		return b.answer(ctx, e, u.Message)
	})
	handler.OnNewChannelMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewChannelMessage) error {
		return b.answer(ctx, e, u.Message)
	})
	b.handlers = dispatch.New(handler, dispatch.Options{Block: true})
	b.manager = updates.New(updates.Config{Handler: b.handlers})
	opts.SessionStorage, opts.UpdateHandler = storage, b.manager
	opts.Middlewares = []telegram.Middleware{hook.UpdateHook(b.manager.Handle)}
	opts.OnConnectionState = func(state telegram.ConnectionState) {
		if state == telegram.ConnectionStateReady {
			select {
			case b.back <- struct{}{}:
			default:
			}
		}
	}
	var err error
	b.client, err = client.New(1, "hash", client.Options{
		Options: invoke.Options{SleepThreshold: flood.Always}, Telegram: opts,
	})
	return b, err
}

func (b *bot) run(ctx context.Context) error {
	defer b.handlers.Close()
	err := b.client.Run(ctx, func(ctx context.Context) error {
		if _, err := b.client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		self, err := b.client.Self(ctx)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer stop()
		work.Go(func() { b.broadcast(ctx) })
		work.Go(func() { b.catchUp(ctx) })
		return b.manager.Run(ctx, b.client.API(), self.ID, updates.AuthOptions{
			IsBot: true, OnStart: func(context.Context) { close(b.started) },
		})
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// catchUp asks for what was missed whenever the connection is back.
func (b *bot) catchUp(ctx context.Context) {
	for {
		select {
		case <-b.back:
			_ = b.manager.Handle(ctx, &tg.UpdatesTooLong{}) // it fails only when ctx is done
		case <-ctx.Done():
			return
		}
	}
}

func (b *bot) answer(ctx context.Context, e tg.Entities, message tg.MessageClass) error {
	m, ok := message.(*tg.Message)
	if !ok || m.Out || !strings.HasPrefix(m.Message, "say ") {
		return nil
	}
	to, err := peer.EntitiesFromUpdate(e).ExtractPeer(m.PeerID)
	if err != nil {
		return err
	}
	// The id is made of the message, so that the server takes one answer to each.
	return b.send(ctx, to, answerPrefix+m.Message, randomID(m.PeerID, m.ID))
}

// randomID is the same for the same message, and another for every other.
func randomID(chat tg.PeerClass, message int) int64 {
	hash := fnv.New64a()
	fmt.Fprint(hash, chat, message)
	return int64(hash.Sum64())
}

// send sends a text until it is there. When a connection breaks nobody knows whether it
// arrived, but with the same random id the server takes it once.
func (b *bot) send(ctx context.Context, to tg.InputPeerClass, text string, id int64) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		_, err := b.client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: to, Message: text, RandomID: id})
		if err == nil || tgerr.Is(err, "RANDOM_ID_DUPLICATE") {
			return nil
		}
		if _, ok := tgerr.As(err); ok || errors.Is(err, invoke.ErrClosed) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// broadcast sends its messages in the background, from a few goroutines.
func (b *bot) broadcast(ctx context.Context) {
	ctx = invoke.WithBackground(ctx)
	var work sync.WaitGroup
	for i, to := range b.audience {
		work.Go(func() {
			for n := range perPerson {
				id := int64(1)<<60 | int64(i)<<20 | int64(n)
				if b.send(ctx, to, fmt.Sprintf("news %d", n), id) != nil {
					return
				}
			}
		})
	}
	work.Wait()
}
