package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

const (
	// broadcastWorkers is how many messages are on their way at once: enough to keep
	// the limiter's pace over the time that a server takes to answer.
	broadcastWorkers = 4

	// broadcastCongestion is how far a broadcast goes: the last tenth of the bucket is
	// for whoever needs an answer meanwhile, who finds a token there and does not
	// queue. The pace stays what the limit allows, for the tokens come no slower; the
	// price is that tenth, once, at the end.
	broadcastCongestion = 0.9

	// broadcastPause is how long to back off before another look.
	broadcastPause = 5 * time.Millisecond
)

// broadcast is one news for many chats, in several messages each.
type broadcast struct {
	bot   *bot
	chats []tg.InputPeerClass
	each  int    // messages to a chat
	step  func() // called after each message, by several goroutines

	seen      []float64     // the congestion at each look
	backedOff time.Duration // time in which it could have sent
}

// text is the message number i of a broadcast.
func (*broadcast) text(i int) string { return fmt.Sprintf("News, part %d", i+1) }

// run sends all messages, first one to each chat, then the next. One that fails does
// not stop the others; an error means that it ended early. What a permit does not pay
// for, the turn in a chat and a second try, is waited for in the background: an answer
// goes first there too.
func (b *broadcast) run(ctx context.Context) error {
	ctx = invoke.WithBackground(ctx)
	var workers errgroup.Group
	workers.SetLimit(broadcastWorkers)
	defer func() { _ = workers.Wait() }() // they log their errors

	for i := range b.each {
		for _, chat := range b.chats {
			permit, err := b.turn(ctx)
			if err != nil {
				return err
			}
			workers.Go(func() error {
				defer permit.Return()
				if err := b.bot.send(invoke.WithPermit(ctx, permit), chat, b.text(i)); err != nil {
					b.bot.logger.Warn("A message of the broadcast was not sent", zap.Error(err))
					return nil
				}
				b.step()
				return nil
			})
		}
	}
	return nil
}

// turn waits until the bot has room to spare and takes a permit. A call that merely
// queued would stand in line with the answers; a permit is got only while nobody
// waits.
func (b *broadcast) turn(ctx context.Context) (*ratelimit.Permit, error) {
	start := time.Now()
	for {
		congestion := b.bot.client.Congestion()
		b.seen = append(b.seen, congestion)
		if congestion <= broadcastCongestion {
			permit, err := b.bot.client.TryAcquire(classify.Message)
			if err == nil {
				b.backedOff += time.Since(start)
				return permit, nil
			}
			if !errors.Is(err, ratelimit.ErrRejected) && !errors.Is(err, flood.ErrGivenUp) {
				return nil, err
			}
		}
		select {
		case <-time.After(broadcastPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// congestion sums up what turn saw.
func (b *broadcast) congestion() (c congestion) {
	for _, v := range b.seen {
		c.Mean += v / float64(len(b.seen))
		c.Highest = max(c.Highest, v)
	}
	return congestion{rounded(c.Mean), rounded(c.Highest)}
}
