package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/metrics"
	"github.com/weirtg/weir/ratelimit"
)

// settings are what the demonstration and an account have in common.
type settings struct {
	limits  invoke.Options
	client  client.Options
	metrics *metrics.Metrics
	tally   *tally
	http    string    // where to serve metrics, "" for nowhere
	out     io.Writer // for people
}

// settings translates the configuration. The error names every limit that no gate takes.
func (r runCommand) settings(cfg config.Config, p process) (settings, error) {
	s := settings{metrics: metrics.New("examplebot"), tally: &tally{}, http: cfg.HTTP, out: p.stdout}
	level := "warn"
	if r.JSON {
		s.out = p.stderr
	}
	if cfg.HasAccount() {
		level = "info"
	}
	logger, err := newLogger(p.stderr, cmp.Or(cfg.LogLevel, level))
	if err != nil {
		return settings{}, err
	}
	limits, limitsErr := rateLimits(cfg.RateLimits)
	chats, chatsErr := chatLimits(cfg.Chats)
	observer := invoke.Observers(s.metrics, s.tally)
	s.limits = invoke.Options{RateLimits: limits, Chats: chats, MaxWaiters: cfg.MaxWaiters, Observer: observer, Logger: logger}
	if cfg.Learning != nil && !*cfg.Learning {
		s.limits.Learning = invoke.Off
	}
	s.client.Options = invoke.Options{SleepThreshold: sleepThreshold(cfg.SleepThreshold), Observer: observer, Logger: logger}
	return s, errors.Join(limitsErr, chatsErr)
}

// rateLimits translates the limits of categories. The error names every category that
// does not exist, and every limit that no gate takes.
func rateLimits(named map[string]config.RateLimit) (map[classify.Category]ratelimit.Change, error) {
	changes := make(map[classify.Category]ratelimit.Change, len(named))
	var errs []error
	for name, limit := range named {
		category, err := classify.ParseCategory(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("rate_limits: %w", err))
			continue
		}
		changes[category] = change(limit)
		errs = append(errs, check("rate_limits."+name, changes[category], invoke.DefaultLimits()[category]))
	}
	return changes, errors.Join(errs...)
}

func change(limit config.RateLimit) (c ratelimit.Change) {
	if limit.Rate != nil {
		c = c.Rate(*limit.Rate)
	}
	if limit.Burst != nil {
		c = c.Burst(*limit.Burst)
	}
	return c
}

// chatLimits translates the limits of chats.
func chatLimits(named config.Chats) (invoke.ChatLimits, error) {
	private, group := invoke.DefaultChatLimits()
	if named.Group.Limit != nil {
		group.Limit = *named.Group.Limit
	}
	if named.Group.Period != nil {
		group.Period = *named.Group.Period
	}
	limits := invoke.ChatLimits{Private: change(named.Private), Group: ratelimit.To(group)}
	switch named.Mode {
	case "always":
		limits.Mode = invoke.ChatsAlways
	case "never":
		limits.Mode = invoke.ChatsNever
	}
	return limits, errors.Join(check("chats.private", limits.Private, private), check("chats.group", limits.Group, group))
}

// check refuses what no gate takes, and names the key of the configuration. Each value
// may be right by itself: it is the burst that makes a rate too slow.
func check(key string, c ratelimit.Change, standard ratelimit.Rule) error {
	_, err := c.Apply(standard)
	if bad, ok := errors.AsType[*ratelimit.LimitError](err); ok {
		bad.Gate = key
	}
	return err
}

func sleepThreshold(t config.Threshold) flood.Threshold {
	switch {
	case t.Never:
		return flood.Never
	case t.Always:
		return flood.Always
	case t.UpTo > 0:
		return flood.UpTo(t.UpTo)
	}
	return flood.Default
}
