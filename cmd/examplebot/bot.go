package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/log/logzap"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message/peer"
	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/telegram/updates/hook"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/ratelimit"
)

// busy is the congestion from which on typing notices are not even tried: half of a
// bucket is gone, and the rest is for answers.
const busy = 0.5

// bot answers people. It knows nothing of where its account is.
type bot struct {
	client  *client.Client
	updates *updates.Manager
	logger  *zap.Logger

	awards    awards
	answers   group         // those under way
	again     chan struct{} // holds one when the connection is back
	connected atomic.Bool
	loggedIn  atomic.Bool
	count     botCount
}

// botCount is what the bot did.
type botCount struct {
	answered, unanswered atomic.Int64
	typing, noTyping     atomic.Int64 // typing notices: sent, left out
}

// newBot returns a bot that is not connected yet and counts awards with limits. It sets
// the options that concern updates.
func newBot(appID int, appHash string, opts client.Options, limits *quota.Limiter) (*bot, error) {
	b := &bot{logger: opts.Logger, awards: awards{limits}, again: make(chan struct{}, 1)}

	dispatcher := tg.NewUpdateDispatcher()
	dispatcher.OnNewMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewMessage) error {
		return b.onMessage(ctx, e, u.Message)
	})
	dispatcher.OnNewChannelMessage(func(ctx context.Context, e tg.Entities, u *tg.UpdateNewChannelMessage) error {
		return b.onMessage(ctx, e, u.Message)
	})
	// The manager puts updates in order and asks for those that were missed. What
	// the bot sends counts too, so the answers to its own calls go through it as well.
	// It warns of each start without a state, which is how a bot starts.
	quiet := opts.Logger.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))
	b.updates = updates.New(updates.Config{Handler: dispatcher, Logger: logzap.New(quiet)})
	opts.Telegram.UpdateHandler = b.updates
	opts.Telegram.Middlewares = append(opts.Telegram.Middlewares, hook.UpdateHook(b.updates.Handle))
	opts.Telegram.OnConnectionState = b.onConnection

	var err error
	b.client, err = client.New(appID, appHash, opts)
	return b, err
}

// online tells whether people are being answered.
func (b *bot) online() bool { return b.connected.Load() && b.loggedIn.Load() }

func (b *bot) onConnection(state telegram.ConnectionState) {
	b.connected.Store(state == telegram.ConnectionStateReady)
	if b.connected.Load() {
		select {
		case b.again <- struct{}{}:
		default:
		}
	}
}

// run connects, logs in unless the session is, and answers people while work runs.
// It returns work's error when the answers under way are finished; a ctx that is done
// ends everything and is no error.
func (b *bot) run(ctx context.Context, token string, work func(context.Context, *tg.User) error) error {
	return b.client.Run(ctx, func(ctx context.Context) error {
		self, err := b.login(ctx, token)
		if err != nil {
			return err
		}
		listening, stop := context.WithCancel(ctx)
		var background sync.WaitGroup
		defer background.Wait()
		defer stop()

		started, failed := make(chan struct{}), make(chan error, 1)
		background.Go(func() {
			defer stop() // without updates there is nothing to do
			failed <- b.updates.Run(listening, b.client.API(), self.ID, updates.AuthOptions{
				IsBot: true, OnStart: func(context.Context) { close(started) },
			})
		})
		background.Go(func() { b.catchUp(listening) })

		select {
		case <-started:
			b.loggedIn.Store(true)
			err = work(listening, self)
		case <-listening.Done():
		}
		// Answers first: without the manager, the answers to their own calls would
		// find nobody to take them.
		b.answers.end()
		stop()
		if e := <-failed; ctx.Err() == nil && !errors.Is(e, context.Canceled) {
			err = errors.Join(err, fmt.Errorf("updates: %w", e))
		}
		return err
	})
}

// catchUp asks for what was missed whenever the connection is back: the server does
// not send it again by itself.
func (b *bot) catchUp(ctx context.Context) {
	for first := true; ; first = false {
		select {
		case <-b.again:
			if first {
				continue // nothing was missed before it
			}
			if err := b.updates.Handle(ctx, &tg.UpdatesTooLong{}); err != nil {
				return // ctx is done
			}
		case <-ctx.Done():
			return
		}
	}
}

// onMessage looks at a message and leaves. All updates pass one goroutine of the
// manager's, so a handler that waited for its turn to send would hold up those of
// everybody else. The answers queue in the limiter instead, which lets them through
// in order of arrival.
func (b *bot) onMessage(ctx context.Context, e tg.Entities, message tg.MessageClass) error {
	m, ok := message.(*tg.Message)
	if !ok || m.Out {
		return nil
	}
	answer := b.reply(m)
	if answer == nil {
		return nil
	}
	to, err := peer.EntitiesFromUpdate(e).ExtractPeer(m.PeerID)
	if err != nil {
		return fmt.Errorf("answer message %d: %w", m.ID, err)
	}
	b.answers.start(func() {
		b.typing(ctx, to)
		if err := b.send(ctx, to, answer(ctx)); err != nil {
			b.count.unanswered.Add(1)
			if ctx.Err() == nil {
				b.logger.Error("A message was not answered", zap.Error(err))
			}
			return
		}
		b.count.answered.Add(1)
	})
	return nil
}

// reply is how the bot answers a message, nil for not at all. It repeats what it is told in
// private only.
func (b *bot) reply(m *tg.Message) func(context.Context) string {
	say := func(text string) func(context.Context) string {
		return func(context.Context) string { return text }
	}
	word, _, _ := strings.Cut(m.Message, " ")
	command, _, _ := strings.Cut(word, "@") // in a group it may be /ping@the_bot
	switch command {
	case "/start":
		return say("Hello! I know /ping, /limits, /award and /awards, and repeat everything else.")
	case "/ping":
		return say("pong")
	case "/limits":
		return func(context.Context) string { return b.limits() }
	case "/award":
		return func(ctx context.Context) string { return b.awards.give(ctx, m) }
	case "/awards":
		return func(ctx context.Context) string { return b.awards.left(ctx, m) }
	}
	if _, private := m.PeerID.(*tg.PeerUser); private && m.Message != "" {
		return say(m.Message)
	}
	return nil
}

// limits tells what could be sent right now, and what could not.
func (b *bot) limits() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Congestion %.0f %%. Calls that could go at once:", 100*b.client.Congestion())
	stats := b.client.Limiter().Stats()
	available := b.client.Available()
	for _, category := range classify.Categories() {
		fmt.Fprintf(&text, "\n%v: %.1f (%v)", category, available[category], stats[category].Limit)
	}
	if floods := b.client.Floods(); len(floods) > 0 {
		last := slices.MaxFunc(floods, func(a, b flood.Record) int { return a.Until.Compare(b.Until) })
		fmt.Fprintf(&text, "\nFloods that stand: %d, the last until %s.", len(floods), last.Until.UTC().Format("15:04:05 UTC"))
	}
	return text.String()
}

// typing shows that an answer is on its way. Nobody misses it, so it goes only when
// there is room to spare: when the bot is not busy, and with a permit, which is never
// got while a call waits.
func (b *bot) typing(ctx context.Context, to tg.InputPeerClass) {
	if b.client.Congestion() >= busy {
		b.count.noTyping.Add(1)
		return
	}
	permit, err := b.client.TryAcquire(classify.Message)
	if err != nil {
		b.count.noTyping.Add(1)
		return
	}
	defer permit.Return()
	_, err = b.client.API().MessagesSetTyping(invoke.WithPermit(ctx, permit), &tg.MessagesSetTypingRequest{
		Peer: to, Action: &tg.SendMessageTypingAction{},
	})
	if err != nil {
		b.logger.Debug("A typing notice was not sent", zap.Error(err))
		return
	}
	b.count.typing.Add(1)
}

// A connection that broke is back in a moment, or in some seconds. sendPause is how
// long to wait before a message is sent again, twice as long each time.
const (
	sendAttempts = 8
	sendPause    = 50 * time.Millisecond
)

// send sends a text, and no more than once: when a connection breaks, nobody knows
// whether the message is there, but with the same random id Telegram takes it only
// once.
func (b *bot) send(ctx context.Context, to tg.InputPeerClass, text string) error {
	id, err := b.client.RandInt64()
	if err != nil {
		return fmt.Errorf("random id: %w", err)
	}
	request := &tg.MessagesSendMessageRequest{Peer: to, Message: text, RandomID: id}
	pause := sendPause
	for attempt := 1; ; attempt++ {
		_, err = b.client.API().MessagesSendMessage(ctx, request)
		switch {
		case err == nil, tgerr.Is(err, "RANDOM_ID_DUPLICATE"):
			return nil
		case attempt == sendAttempts || !broken(ctx, err):
			return err
		}
		b.logger.Info("The connection broke, sending again", zap.Error(err))
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}

// broken tells whether the connection is to blame for an error, and not the server,
// the limiter or whoever ended ctx.
func broken(ctx context.Context, err error) bool {
	_, answered := tgerr.As(err)
	_, refused := errors.AsType[*ratelimit.RefusedError](err) // a queue was full
	return !answered && !refused && ctx.Err() == nil &&
		!errors.Is(err, flood.ErrGivenUp) && !errors.Is(err, invoke.ErrClosed)
}
