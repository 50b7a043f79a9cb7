package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/contrib/middleware/floodwait"
	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// work is what each contender has to do.
type work struct {
	limit, configured float64
	burst             int
	length, settle    time.Duration
	limits            localdc.Limits
}

// result is what one contender made of it.
type result struct {
	Contender string `json:"contender"`
	First     part   `json:"first"`
	Rest      part   `json:"rest"`
	Calls     int    `json:"calls"`
	Refused   int    `json:"refused"`
	Known     int    `json:"known"` // sent into a flood of which the client had been told
}

// part is a part of a run.
type part struct {
	Share         float64 `json:"share"`
	FloodsAMinute float64 `json:"floods_a_minute"`
}

// contender is one way to deal with floods: a middleware, and what to run it within.
type contender struct {
	name  string
	start func(w work) (telegram.Middleware, func(context.Context, func(context.Context) error) error, error)
}

func contenders() []contender {
	alone := func(ctx context.Context, client func(context.Context) error) error { return client(ctx) }
	return []contender{
		{"weir", func(w work) (telegram.Middleware, func(context.Context, func(context.Context) error) error, error) {
			m, err := invoke.New(invoke.Options{
				RateLimits: map[classify.Category]ratelimit.Change{
					classify.Message: ratelimit.Rate(w.configured),
					classify.Global:  ratelimit.Rate(2 * w.configured).Burst(100),
				},
				Chats: invoke.ChatLimits{Mode: invoke.ChatsNever},
			})
			return m, alone, err
		}},
		{"waiter", func(work) (telegram.Middleware, func(context.Context, func(context.Context) error) error, error) {
			waiter := floodwait.NewWaiter()
			return waiter, waiter.Run, nil
		}},
		{"simplewaiter", func(work) (telegram.Middleware, func(context.Context, func(context.Context) error) error, error) {
			return floodwait.NewSimpleWaiter(), alone, nil
		}},
	}
}

const (
	workers = 32
	chats   = 100
	// onTheWire is how long after the client was told of a flood a call may still arrive
	// that had been sent before.
	onTheWire = 200 * time.Millisecond
	// oneFlood is within what time refusals are one flood: waits are a second or more.
	oneFlood = time.Second
)

func (w work) run(ctx context.Context, c contender) (result, error) {
	cloud, err := localdc.New(localdc.Options{Limits: w.limits})
	if err != nil {
		return result{}, fmt.Errorf("start data centre: %w", err)
	}
	defer func() { _ = cloud.Close() }()
	middleware, within, err := c.start(w)
	if err != nil {
		return result{}, err
	}
	opts := cloud.ClientOptions()
	opts.SessionStorage, opts.Middlewares, opts.NoUpdates = &session.StorageMemory{}, []telegram.Middleware{middleware}, true
	client := telegram.NewClient(1, "hash", opts)
	var start time.Time
	err = within(ctx, func(ctx context.Context) error {
		return client.Run(ctx, func(ctx context.Context) error {
			if _, err := client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
				return fmt.Errorf("log in: %w", err)
			}
			peers := make([]tg.InputPeerClass, chats)
			for i := range peers {
				peers[i] = cloud.AddUser(fmt.Sprintf("chat%d", i)).InputPeer()
			}
			cloud.ResetRecord()
			start = time.Now()
			ctx, cancel := context.WithTimeout(ctx, w.length)
			defer cancel()
			send(ctx, client, peers)
			return nil
		})
	})
	if err != nil && !errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return result{}, errors.Join(err, ctx.Err())
	}
	record := cloud.Record()
	r := result{Contender: c.name, Calls: len(record.Calls), Refused: len(record.Floods()), Known: len(record.Inside(onTheWire))}
	r.First = w.part(record.Calls, start, start.Add(w.settle))
	r.Rest = w.part(record.Calls, start.Add(w.settle), start.Add(w.length))
	return r, nil
}

// send keeps the workers busy until ctx is done.
func send(ctx context.Context, client *telegram.Client, peers []tg.InputPeerClass) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1)
				_, err := client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
					Peer: peers[n%chats], Message: "hello", RandomID: n,
				})
				if err != nil && ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond) // a program that has given up goes on with the next
				}
			}
		})
	}
	all.Wait()
}

// part sums up what arrived between two moments.
func (w work) part(calls []localdc.Call, from, to time.Time) (p part) {
	passed, floods := 0, 0
	var flood time.Time
	for _, c := range calls {
		switch {
		case c.Time.Before(from) || !c.Time.Before(to):
		case !c.Flooded():
			passed++
		case c.Time.Sub(flood) >= oneFlood:
			floods, flood = floods+1, c.Time
		}
	}
	length := to.Sub(from)
	p.Share = float64(passed) / (w.limit * length.Seconds())
	p.FloodsAMinute = float64(floods) / length.Minutes()
	return p
}
