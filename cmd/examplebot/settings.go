package main

import (
	"errors"
	"fmt"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// rateLimits translates the limits that a configuration names. The error names every
// category that there is not, and every limit that no gate takes.
func rateLimits(named map[string]config.RateLimit) (map[classify.Category]ratelimit.Change, error) {
	defaults := invoke.DefaultLimits()
	changes := make(map[classify.Category]ratelimit.Change, len(named))
	var errs []error
	for name, limit := range named {
		category, err := classify.ParseCategory(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("rate_limits: %w", err))
			continue
		}
		changes[category] = change(limit)
		errs = append(errs, checkRule("rate_limits."+name, changes[category].Apply(defaults[category])))
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

// chatLimits puts what a configuration names of the limits of chats over the defaults.
func chatLimits(named config.Chats) (invoke.ChatLimits, error) {
	limits := invoke.DefaultChatLimits()
	switch named.Mode {
	case "always":
		limits.Mode = invoke.ChatsAlways
	case "never":
		limits.Mode = invoke.ChatsNever
	}
	limits.Private = change(named.Private).Apply(limits.Private)
	if limits.Private == (ratelimit.Limit{}) {
		limits.Private.Burst = 1 // no less paused, and not taken for one that is not set
	}
	if named.Group.Limit != nil {
		limits.Group.Limit = *named.Group.Limit
	}
	if named.Group.Period != nil {
		limits.Group.Period = *named.Group.Period
	}
	return limits, errors.Join(checkRule("chats.private", limits.Private), checkRule("chats.group", limits.Group))
}

// checkRule refuses what no gate takes, by the key of the configuration. Each value
// may be right by itself: it is the burst that makes a rate too slow.
func checkRule(key string, rule ratelimit.Rule) error {
	err := rule.Validate()
	if bad, ok := errors.AsType[*ratelimit.LimitError](err); ok {
		bad.Gate = key
	}
	return err
}

// sleepThreshold translates the longest wait that is sat out.
func sleepThreshold(t config.Threshold) flood.Threshold {
	switch t.Kind {
	case config.ThresholdNever:
		return flood.Never
	case config.ThresholdAlways:
		return flood.Always
	case config.ThresholdFor:
		return flood.UpTo(t.Duration)
	default:
		return flood.Default
	}
}
