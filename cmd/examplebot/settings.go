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
		errs = append(errs, check("rate_limits."+name, changes[category], defaults[category]))
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

// chatLimits translates what a configuration names of the limits of chats.
func chatLimits(named config.Chats) (invoke.ChatLimits, error) {
	var limits invoke.ChatLimits
	switch named.Mode {
	case "always":
		limits.Mode = invoke.ChatsAlways
	case "never":
		limits.Mode = invoke.ChatsNever
	}
	private, group := invoke.DefaultChatLimits()
	limits.Private = change(named.Private)
	if named.Group.Limit != nil {
		group.Limit = *named.Group.Limit
	}
	if named.Group.Period != nil {
		group.Period = *named.Group.Period
	}
	limits.Group = ratelimit.To(group)
	return limits, errors.Join(check("chats.private", limits.Private, private), check("chats.group", limits.Group, group))
}

// check refuses what no gate takes, by the key of the configuration. Each value may be
// right by itself: it is the burst that makes a rate too slow.
func check(key string, c ratelimit.Change, standard ratelimit.Rule) error {
	_, err := c.Apply(standard)
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
