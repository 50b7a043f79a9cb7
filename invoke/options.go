package invoke

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/ratelimit"
)

// What [Options] default to.
const (
	// DefaultMaxRetries is how often a call is sent again after a flood.
	DefaultMaxRetries = 5
	// DefaultMaxWait is the bound on the sum of the flood waits of one call.
	DefaultMaxWait = time.Minute
)

// Options of a [Middleware]. The zero value is ready for use.
type Options struct {
	// Limiter to share with other clients of the account. nil makes one of its own
	// from the five fields below, which must be left out otherwise.
	Limiter *Limiter
	// RateLimits change the default limits, see [LimiterOptions].
	RateLimits map[classify.Category]ratelimit.Change
	// Chats, Gates and MaxWaiters are those of [LimiterOptions].
	Chats      ChatLimits
	Gates      []KeyedGate
	MaxWaiters int
	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock

	// SleepThreshold is the longest flood wait that is sat out: flood.Default is
	// 10 s, flood.Never and flood.Always are what they say, flood.UpTo any other.
	// A longer wait fails the call at once with a [*flood.WaitError].
	SleepThreshold flood.Threshold
	// MaxWait bounds the flood waits of one call taken together, waits for file
	// parts of accounts without Premium excepted. 0 means [DefaultMaxWait]; it is
	// never less than the threshold of the call.
	MaxWait time.Duration
	// MaxRetries is how often a call is sent again after floods, waits for file
	// parts excepted. 0 means [DefaultMaxRetries], a negative number none.
	MaxRetries int

	// Categories change how calls are classified.
	Categories classify.Options

	// Observer is told what happens to each call, and, without a Limiter that is shared,
	// what happens to the limiter. nil is fine.
	Observer Observer
	// Logger gets the floods: one line for each method and kind in a minute, however
	// many calls are flooded (in an hour, for file parts). nil logs nothing.
	Logger *zap.Logger
}

func (o *Options) setDefaults() error {
	var errs []error
	if o.Limiter != nil && (o.RateLimits != nil || o.Clock != nil || o.Gates != nil || o.Chats != (ChatLimits{}) || o.MaxWaiters != 0) {
		errs = append(errs, errors.New("Limiter is shared: give RateLimits, Chats, Gates, MaxWaiters and Clock to NewLimiter instead"))
	}
	if o.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("MaxWait is %v: want a positive duration, or 0 for %v", o.MaxWait, DefaultMaxWait))
	}
	if o.SleepThreshold < flood.Never {
		errs = append(errs, fmt.Errorf("SleepThreshold is %v: want flood.Default, Never, Always or UpTo", time.Duration(o.SleepThreshold)))
	}
	if o.MaxWait == 0 {
		o.MaxWait = DefaultMaxWait
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = DefaultMaxRetries
	}
	o.MaxRetries = max(o.MaxRetries, 0)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return errors.Join(errs...)
}

// limiter are the options of a limiter that is not shared.
func (o Options) limiter() LimiterOptions {
	return LimiterOptions{
		RateLimits: o.RateLimits, Chats: o.Chats, Gates: o.Gates, MaxWaiters: o.MaxWaiters,
		Observer: o.Observer, Logger: o.Logger, Clock: o.Clock,
	}
}

// choices are what one call wants to do differently.
type choices struct {
	noWait     bool
	background bool
	threshold  flood.Threshold
	category   classify.Category
	cost       int
	permit     *ratelimit.Permit
}

type choicesKey struct{}

func choose(ctx context.Context, change func(*choices)) context.Context {
	c := chosen(ctx)
	change(&c)
	return context.WithValue(ctx, choicesKey{}, &c)
}

func chosen(ctx context.Context) choices {
	if c, ok := ctx.Value(choicesKey{}).(*choices); ok {
		return *c
	}
	return choices{cost: 1}
}

// WithNoWait makes calls fail in place of waiting: for tokens with a
// [*ratelimit.RefusedError] that matches ratelimit.ErrRejected, for a flood with a
// [*flood.WaitError].
func WithNoWait(ctx context.Context) context.Context {
	return choose(ctx, func(c *choices) { c.noWait = true })
}

// WithBackground puts calls into the background lane: at each gate they let all others
// go first, but for every tenth time. For long jobs, such as a broadcast, during which
// the bot is to go on answering.
func WithBackground(ctx context.Context) context.Context {
	return choose(ctx, func(c *choices) { c.background = true })
}

// WithThreshold sets the longest flood wait that calls sit out, and raises MaxWait to it
// where that is less; MaxRetries holds all the same. It overrides what typing notices and
// requests for missed updates have of their own. flood.Default goes back to the client's.
func WithThreshold(ctx context.Context, t flood.Threshold) context.Context {
	return choose(ctx, func(c *choices) { c.threshold = t })
}

// WithCategory charges calls to another category. One that is no category of calls
// fails them before anything is sent.
func WithCategory(ctx context.Context, category classify.Category) context.Context {
	return choose(ctx, func(c *choices) { c.category = category })
}

// WithCost makes calls cost more than one token at each gate, such as one that
// forwards many messages at once. A cost below 1 fails them before anything is sent,
// one above a gate's burst with ratelimit.ErrImpossible.
func WithCost(ctx context.Context, tokens int) context.Context {
	return choose(ctx, func(c *choices) { c.cost = tokens })
}

// WithPermit prepays one call of the category that the permit was taken for. The
// first such call uses it up; calls of other categories, retries and later calls
// are charged as ever. A permit that no call used can still be returned.
func WithPermit(ctx context.Context, p *ratelimit.Permit) context.Context {
	return choose(ctx, func(c *choices) { c.permit = p })
}

func (c choices) check() error {
	if c.category == classify.Global || c.category != 0 && !c.category.Valid() {
		return fmt.Errorf("WithCategory: %v is no category of calls", c.category)
	}
	if c.cost < 1 || c.cost > math.MaxInt32 {
		return fmt.Errorf("WithCost: cost is %d: want a whole number from 1", c.cost)
	}
	return nil
}
