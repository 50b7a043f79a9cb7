package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// trouble makes what a bot meets in months happen in minutes.
type trouble struct {
	cloud *localdc.Cloud
	link  *localdc.Link
	bot   *bot
	say   func(string, ...any)
	rand  *rand.Rand
	seen  map[string]int
}

func (w *trouble) make(ctx context.Context) {
	kinds := []struct {
		name string
		do   func(context.Context)
	}{
		{"cut", func(context.Context) { w.cloud.Cut() }},
		{"line fails", func(ctx context.Context) {
			w.link.Fail()
			rest(ctx, w.upTo(3*time.Second))
			w.link.Restore()
		}},
		{"line hangs", func(ctx context.Context) {
			w.link.Hang()
			rest(ctx, w.upTo(3*time.Second))
			w.link.Restore()
		}},
		{"half open", func(ctx context.Context) {
			w.link.Strand()
			rest(ctx, w.upTo(2*time.Second))
			w.link.Cut() // as the router's answer to the next packet would
		}},
		{"flood of a method", func(context.Context) {
			_ = w.cloud.Flood(localdc.Scope{Method: "messages.sendMessage"}, w.upTo(4*time.Second))
		}},
		{"flood of differences", func(context.Context) {
			_ = w.cloud.Flood(localdc.Scope{Method: "updates.getDifference"}, w.upTo(8*time.Second))
		}},
		{"another data centre", func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			pool, err := w.bot.client.DC(ctx, 4, 1) // brings the login there, unless the line is gone
			if err != nil {
				return
			}
			_, _ = tg.NewClient(pool).HelpGetConfig(ctx)
			_ = pool.Close()
		}},
	}
	for {
		if !rest(ctx, time.Second+w.upTo(4*time.Second)) {
			return
		}
		kind := kinds[w.rand.IntN(len(kinds))]
		w.say("%s", kind.name)
		w.seen[kind.name]++
		kind.do(ctx)
	}
}

func (w *trouble) upTo(most time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(most)))
}

// rest reports false when ctx is done.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// delivered counts the messages of the broadcast that are there once.
func delivered(chats []chat) (n int) {
	for _, c := range chats {
		count := map[string]int{}
		for _, m := range c.Messages() {
			if len(m.Message) > 5 && m.Message[:5] == "news " {
				count[m.Message]++
			}
		}
		for _, times := range count {
			if times == 1 {
				n++
			}
		}
	}
	return n
}
