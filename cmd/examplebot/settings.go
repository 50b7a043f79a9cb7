package main

import (
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

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

// newLogger logs for people, to w.
func newLogger(w io.Writer, level string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil || at > zapcore.ErrorLevel {
		return nil, fmt.Errorf("--log-level: %q is no level: want debug, info, warn or error", level)
	}
	encoding := zap.NewDevelopmentEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), at)), nil
}
