package main

import (
	"context"

	"github.com/gotd/contrib/middleware/floodwait"
	contrib "github.com/gotd/contrib/middleware/ratelimit"
	"github.com/gotd/td/telegram"
	"golang.org/x/time/rate"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// contender is one way to deal with limits.
type contender struct {
	name string
	// start returns the middlewares for a client, what to run it within (nil: nothing),
	// and what marks the calls of a broadcast (nil: nothing does).
	start func(w workload) (setup, error)
}

type setup struct {
	middlewares []telegram.Middleware
	within      func(ctx context.Context, client func(context.Context) error) error
	background  func(context.Context) context.Context
}

func contenders() []contender {
	return []contender{
		{"weir", startWeir},
		{"ratelimit", func(w workload) (setup, error) {
			return setup{middlewares: []telegram.Middleware{startRatelimit(w)}}, nil
		}},
		{"waiter", func(workload) (setup, error) {
			waiter := floodwait.NewWaiter()
			return setup{middlewares: []telegram.Middleware{waiter}, within: waiter.Run}, nil
		}},
		{"waiter+ratelimit", func(w workload) (setup, error) { // in the order of contrib's own example
			waiter := floodwait.NewWaiter()
			return setup{middlewares: []telegram.Middleware{waiter, startRatelimit(w)}, within: waiter.Run}, nil
		}},
		{"simplewaiter", func(workload) (setup, error) {
			return setup{middlewares: []telegram.Middleware{floodwait.NewSimpleWaiter()}}, nil
		}},
		{"nothing", func(workload) (setup, error) { return setup{}, nil }},
	}
}

// startWeir tells weir the data centre's limits: the account's for messages and all
// calls together, the photos' for media, and those of the chats.
func startWeir(w workload) (setup, error) {
	account := limit(w.limits.Account)
	media := account
	if r, ok := w.limits.Methods[sendMedia]; ok {
		media = limit(r)
	}
	o := invoke.Options{
		RateLimits: map[classify.Category]ratelimit.Change{
			classify.Message: ratelimit.To(account),
			classify.Media:   ratelimit.To(media),
			classify.Global:  ratelimit.To(account),
		},
		Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways},
	}
	if w.limits.Chat != (localdc.Rate{}) {
		o.Chats.Private = ratelimit.To(limit(w.limits.Chat))
	}
	if g := w.limits.Group; g != (localdc.Window{}) {
		o.Chats.Group = ratelimit.To(ratelimit.Window{Limit: g.Limit, Period: g.Period})
	}
	m, err := invoke.New(o)
	if err != nil {
		return setup{}, err
	}
	return setup{middlewares: []telegram.Middleware{m}, background: invoke.WithBackground}, nil
}

// limit is the data centre's limit as weir takes it; where there is none, one that is
// never met.
func limit(r localdc.Rate) ratelimit.Limit {
	if r == (localdc.Rate{}) {
		return ratelimit.Limit{Rate: 1e4, Burst: 1e4}
	}
	return ratelimit.Limit{Rate: r.PerSecond, Burst: r.Burst}
}

// startRatelimit tells contrib's limiter, which has one rate for all calls, the
// account's; where only groups are limited, what they allow together.
func startRatelimit(w workload) telegram.Middleware {
	if r := w.limits.Account; r != (localdc.Rate{}) {
		return contrib.New(rate.Limit(r.PerSecond), r.Burst)
	}
	g := w.limits.Group
	return contrib.New(rate.Limit(float64(w.chats*g.Limit)/g.Period.Seconds()), g.Limit)
}
