package invoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// What [Options] default to.
const (
	// DefaultMaxRetries is how often a call is sent again after a flood.
	DefaultMaxRetries = 5
	// DefaultMaxWait is the bound on the sum of the flood waits of one call.
	DefaultMaxWait = time.Minute
)

// Learning says whether floods lower limits. See the package's page.
type Learning uint8

const (
	// On lowers the limit of what was flooded, and raises it again as it is used, never
	// above what is configured. A lesson is forgotten after sixty seconds of use at the
	// configured limit without a flood, or after ten minutes in which the limit lay unused;
	// after more than three floods that rest has to be longer, up to a day.
	On Learning = iota
	// Off keeps the limits as they are configured.
	Off
)

// Refusals says after how many permanent refusals of a kind, such as PEER_FLOOD, calls of
// that kind fail with a [*flood.PermanentError] and are not sent. A login and some successful
// calls start over; so does [Limiter.ClearRefusals].
type Refusals struct {
	// Limit is how many within Period are too many, 1 or more. 0 means 20.
	Limit int
	// Period is how long they are counted together, from the first on. 0 means 10 minutes.
	Period time.Duration
	// Off sends every call, whatever was refused.
	Off bool
}

// Options are all that an account needs: its limits, what is kept of it, and how its
// calls wait. The zero value is ready for use.
type Options struct {
	// RateLimits change the default limits ([DefaultLimits]). A change that names only
	// the rate keeps the default burst, and the other way round.
	RateLimits map[classify.Category]ratelimit.Change
	// Chats are the limits of each chat, in front of the category's.
	Chats ChatLimits
	// Gates are the program's own, in front of the chat's, at most [MaxKeyedGates]. A
	// call passes them in this order: name the narrowest first.
	Gates []KeyedGate
	// MaxWaiters bounds the queue of each category and chat, in each lane; 0 for no
	// bound. Beyond it calls are refused with ratelimit.ErrQueueFull.
	MaxWaiters int
	// Learning is [On] unless set.
	Learning Learning
	// Refusals says after how many permanent refusals calls of a kind are no longer sent.
	Refusals Refusals

	// Store keeps floods, refusals and learned limits beyond the life of the process: a
	// boltstore.Store in a file, a redisstore.Store on a server. They are honoured from
	// the first call on, and so is what other processes save there, within moments. A
	// store that is a ratelimit.Shared too, as that on Redis is, also holds the gates,
	// for all processes of the account together. nil keeps and shares nothing. The
	// limiter does not close it. It belongs to one account: see [ErrOtherAccount].
	Store store.Facts
	// OnFailure says what becomes of calls while the store is unavailable:
	// store.FailClosed unless set. What a store keeps stops no call when it is lost while
	// the limiter runs: it is saved when the store is back.
	OnFailure store.Policy

	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock

	// Limiter is shared with other clients of the same account. All fields above must
	// be left out then, since they are the limiter's; those below are the limiter's
	// unless they are set here. nil makes a limiter of this client's own. A client of
	// another account gets [ErrOtherAccount] as soon as an answer shows its account.
	Limiter *Limiter

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

	// Observer hears what happens to each call and to the limiter. nil is fine.
	Observer Observer
	// Logger gets the floods: one line for each method and kind in a minute, however
	// many calls are flooded (in an hour, for file parts). nil logs nothing of calls.
	// It also gets a line when the store is lost and one when it is back, at most one of
	// each in a minute. nil writes these to standard error, since an account whose
	// processes no longer share their limits should not go unnoticed; zap.NewNop() writes
	// nothing.
	Logger *zap.Logger
}

// inherit fills what was left out from the options of the limiter that is shared.
func (o *Options) inherit() error {
	var err error
	if o.RateLimits != nil || o.Chats != (ChatLimits{}) || o.Gates != nil || o.MaxWaiters != 0 || o.Learning != On ||
		o.Refusals != (Refusals{}) || o.Store != nil || o.OnFailure != store.FailClosed || o.Clock != nil {
		err = errors.New("Limiter is shared: give RateLimits, Chats, Gates, MaxWaiters, Learning, Refusals, Store, OnFailure and Clock to NewLimiter instead")
	}
	of := o.Limiter.opts
	o.SleepThreshold = o.SleepThreshold.Or(of.SleepThreshold)
	o.MaxWait = cmp.Or(o.MaxWait, of.MaxWait)
	o.MaxRetries = cmp.Or(o.MaxRetries, of.MaxRetries)
	if reflect.ValueOf(o.Categories).IsZero() {
		o.Categories = of.Categories
	}
	if o.Observer == nil {
		o.Observer = of.Observer
	}
	if o.Logger == nil {
		o.Logger = of.Logger
	}
	return err
}

// setDefaults fills in the defaults of what concerns single calls.
func (o *Options) setDefaults() error {
	var errs []error
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
