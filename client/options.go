package client

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// Telegram is everything that gotd's client takes: session storage, update
	// handler, data centres, resolver, device and so on. Its Middlewares stay
	// outside of the choke point, so what they send again is limited again. Where
	// its Logger is nil, gotd's warnings and errors go to Logger below.
	Telegram telegram.Options

	// RateLimits change the default limits (see invoke.DefaultLimits) by category.
	// A change that names only the rate keeps the default burst.
	RateLimits map[classify.Category]ratelimit.Change
	// Chats are the limits of each chat; on for bots unless set otherwise.
	Chats invoke.ChatLimits
	// Gates are the program's own limits: for each user, command, or anything else
	// that a call has.
	Gates []invoke.KeyedGate
	// MaxWaiters bounds the queue of each category and chat, in each lane (one is for
	// invoke.WithBackground); 0 for no bound.
	MaxWaiters int
	// Limiter to share with other clients of the same account, in place of the four
	// fields above.
	Limiter *invoke.Limiter

	// SleepThreshold is the longest flood wait that a call sits out: flood.Default
	// (10 s), flood.Never, flood.Always, or flood.UpTo a duration.
	SleepThreshold flood.Threshold
	// MaxWait bounds the flood waits of one call taken together, 0 for
	// invoke.DefaultMaxWait.
	MaxWait time.Duration
	// MaxRetries is how often a call is sent again after a flood, 0 for
	// invoke.DefaultMaxRetries, a negative number for never.
	MaxRetries int
	// Categories change how calls are classified.
	Categories classify.Options

	// Observer is told what happens to each call, and, without a Limiter that is shared,
	// what happens to the limiter. nil is fine.
	Observer invoke.Observer
	// Logger gets floods, condensed. nil logs nothing.
	Logger *zap.Logger
}

// checkApp refuses credentials that Telegram would, without repeating the hash.
func checkApp(appID int, appHash string) error {
	var errs []error
	if appID <= 0 {
		errs = append(errs, fmt.Errorf("app id is %d: want the number that my.telegram.org/apps gives", appID))
	}
	if appHash == "" {
		errs = append(errs, errors.New("app hash is empty: want the text that my.telegram.org/apps gives"))
	}
	return errors.Join(errs...)
}
