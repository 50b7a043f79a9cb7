package main

import (
	"errors"
	"fmt"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/ratelimit"
)

// rateLimits translates the limits that a configuration names. The error names every
// category that there is not.
func rateLimits(named map[string]config.RateLimit) (map[classify.Category]ratelimit.Change, error) {
	changes := make(map[classify.Category]ratelimit.Change, len(named))
	var errs []error
	for name, limit := range named {
		category, err := classify.ParseCategory(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("rate_limits: %w", err))
			continue
		}
		var change ratelimit.Change
		if limit.Rate != nil {
			change = change.Rate(*limit.Rate)
		}
		if limit.Burst != nil {
			change = change.Burst(*limit.Burst)
		}
		changes[category] = change
	}
	return changes, errors.Join(errs...)
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
