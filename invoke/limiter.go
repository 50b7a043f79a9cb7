package invoke

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/breaker"
	"github.com/weirtg/weir/internal/floods"
	"github.com/weirtg/weir/internal/persist"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// DefaultLimits returns the limits that a [Limiter] starts from, by category. They
// keep an ordinary bot below the figures that Telegram publishes (about 30
// messages a second) with room for what it does besides sending.
func DefaultLimits() map[classify.Category]ratelimit.Limit {
	return map[classify.Category]ratelimit.Limit{
		classify.Message: {Rate: 20, Burst: 30},
		classify.Media:   {Rate: 5, Burst: 10},
		classify.Query:   {Rate: 30, Burst: 50},
		classify.Admin:   {Rate: 15, Burst: 20},
		classify.Bulk:    {Rate: 3, Burst: 5},
		classify.Account: {Rate: 10, Burst: 15},
		classify.Global:  {Rate: 30, Burst: 40},
	}
}

// Limiter is what the clients of one account share: a gate for each category, the
// global gate, those of chats and of the program, the floods that are known, and the rates
// that they have taught. It is safe for concurrent use. It has goroutines only if it
// has a store, until Close.
type Limiter struct {
	opts    Options
	limiter *ratelimit.Limiter
	gates   [classify.Global + 1]ratelimit.Gate // by category; the first is unused
	byName  map[string]*ratelimit.Gates         // the keyed ones
	keyed   []keyedGates                        // those with a key function
	private *ratelimit.Gates
	group   *ratelimit.Gates
	paid    *ratelimit.Gates
	paces   *ratelimit.Gates // of chats that have learned their rate
	tracker *floods.Tracker
	breaker *breaker.Breaker
	clock   clock.Clock
	home    atomic.Int64 // the account's data centre, 0 while unknown
	bot     atomic.Int32 // whether the account is one: botUnknown, botNo or botYes
	owner   owner

	chatMode ChatMode
	learned  *adapt.Limits
	keeper   *persist.Keeper // nil: nothing is kept
	shares   bool            // its gates, with other processes
	changed  changedLimits
	reporter *store.Reporter // of the store to the observer and the log
	observer Observer
	log      *zap.Logger // of stores
	logged   *condenser

	life context.Context // done after Close
	end  context.CancelFunc
}

// NewLimiter returns a limiter with full buckets, for several clients of an account that
// run in one process: give it to each in [Options].Limiter. A single client makes its own.
// What opts says of single calls holds for the clients that do not say it themselves.
//
// The error names every limit that is out of range, every category that does not exist,
// and every gate that is wrong.
//
// With a store NewLimiter asks whether it can be used, and reads what is remembered; it
// blocks for that, seven seconds at most. A store that waiting does not mend (a wrong
// password, a right that is missing, a replica) is an error under every policy, which matches
// store.ErrMisconfigured and says what to do. One that is away for now is an error under
// store.FailClosed; otherwise it is logged, and joined when it is there.
func NewLimiter(opts Options) (*Limiter, error) {
	if opts.Limiter != nil {
		return nil, errors.New("invoke: Limiter is set: a limiter is made of options of its own")
	}
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	shared, shares := opts.Store.(ratelimit.Shared)
	l := &Limiter{opts: opts, clock: opts.Clock, observer: opts.Observer, shares: shares, byName: map[string]*ratelimit.Gates{}}
	if l.log = opts.Logger; l.log == nil {
		l.log = standardError()
	}
	l.logged = newCondenser(opts.Clock)
	l.life, l.end = context.WithCancel(context.Background())
	l.reporter = store.NewReporter(opts.Clock, l.storeChanged)
	l.limiter = ratelimit.New(ratelimit.Options{Clock: opts.Clock, Shared: shared, OnFailure: opts.OnFailure, Reporter: l.reporter})
	l.keeper = l.newKeeper(opts)
	l.changed.limiter, l.changed.rules = l, map[string]ratelimit.Rule{}
	l.tracker = floods.New(floods.Options{Clock: opts.Clock, Journal: l.keeper != nil})
	err := l.setUp(opts)
	if err == nil {
		l.addSources()
		err = l.keeper.Start(opts.OnFailure)
	}
	if err != nil {
		l.end()
		l.reporter.Close()
		return nil, err
	}
	return l, nil
}

// setUp makes what the options describe. The error joins all that is wrong with them.
func (l *Limiter) setUp(opts Options) error {
	var errs []error
	if opts.MaxWaiters < 0 {
		errs = append(errs, fmt.Errorf("MaxWaiters is %d: want 0 for no bound, or more", opts.MaxWaiters))
	}
	if !opts.OnFailure.Valid() {
		errs = append(errs, fmt.Errorf("OnFailure is %v: want store.FailClosed, Open or Local", opts.OnFailure))
	}
	if opts.Learning > Off {
		errs = append(errs, fmt.Errorf("Learning is %d: want On or Off", opts.Learning))
	}
	var err error
	l.breaker, err = breaker.New(breaker.Options{
		Limit: opts.Refusals.Limit, Period: opts.Refusals.Period, Off: opts.Refusals.Off, Clock: opts.Clock,
	})
	errs = append(errs, err)
	var limits [classify.Global + 1]ratelimit.Limit
	for category, standard := range DefaultLimits() {
		limits[category] = standard
	}
	changed, err := adapt.Changed(limits, opts.RateLimits)
	errs = append(errs, err)
	for category, limit := range changed {
		limits[category] = limit
	}
	if errs := errors.Join(errs...); errs != nil {
		return errors.Join(errs, l.addKeyed(opts))
	}
	for _, category := range classify.Categories() {
		gate, err := l.limiter.NewGate(category.String(), limits[category])
		if err != nil {
			return fmt.Errorf("rate limits: %w", err)
		}
		gate.SetMaxWaiters(opts.MaxWaiters)
		l.gates[category] = gate
	}
	if err := l.addKeyed(opts); err != nil {
		return err
	}
	learning := adapt.Options{
		Clock: opts.Clock, Off: opts.Learning == Off, Configured: limits, Gates: l.gates, Limiter: l.limiter,
		Paces: l.paces, ChatLimit: l.chatLimit, Shares: l.shares,
	}
	if l.keeper != nil {
		learning.Journal = l.keeper.Journal()
	}
	l.learned = adapt.New(learning)
	return nil
}

func named(gate string, err error) error {
	if bad, ok := errors.AsType[*ratelimit.LimitError](err); ok {
		bad.Gate = gate
	}
	return err
}

// Congestion is that of the busiest category, the global gate included: 0 when all are
// idle, 1 when a call waits at one of them. A paused gate counts only while a call waits
// there; gates of chats and of the program do not count. A long job polls it to back
// off. It neither blocks nor allocates.
func (l *Limiter) Congestion() float64 { return l.limiter.Congestion() }

// Available returns the tokens of each category and the global ones, whole ones and a
// part. It does not block.
func (l *Limiter) Available() map[classify.Category]float64 {
	available := make(map[classify.Category]float64, len(l.gates))
	for category, stats := range l.Stats() {
		available[category] = stats.Tokens
	}
	return available
}

// Stats returns the state of the gates of all categories, the global one included, at
// one moment. Those of chats and of the program are in [Limiter.GateStats]. It does not
// block.
func (l *Limiter) Stats() map[classify.Category]ratelimit.GateStats {
	l.learned.ForgetAllRested() // their limits are the configured ones again
	stats := make(map[classify.Category]ratelimit.GateStats, len(l.gates))
	categories := classify.Categories()
	for i, s := range l.limiter.Stats() { // in the order in which they were made
		stats[categories[i]] = s
	}
	return stats
}

// TryAcquire takes a token of the category and a global one, if both are there and
// nobody waits for them. The permit pays for one call: put it on the call's context
// with [WithPermit], or give it back with Return. Gates of its chat or of the program
// are the call's own to pass. TryAcquire does not block.
//
// The error is a [*ratelimit.RefusedError] that matches ratelimit.ErrRejected, or a
// [*flood.WaitError] while an account-wide flood stands, or [ErrClosed].
func (l *Limiter) TryAcquire(category classify.Category) (*ratelimit.Permit, error) {
	if !category.Valid() || category == classify.Global {
		return nil, fmt.Errorf("try acquire: %v is no category of calls: want one of %v", category, classify.Categories()[:classify.Global-1])
	}
	now := l.clock.Now()
	if until := l.tracker.AccountUntil(ownDC, reads(category)); until.After(now) {
		return nil, &flood.WaitError{
			Method: category.String(), DC: l.number(ownDC), Kind: flood.FloodWait, Scope: flood.Account, Reason: flood.KnownFlood,
			Wait: until.Sub(now), Until: until,
		}
	}
	return l.limiter.TryAcquire(1, l.gates[category], l.gates[classify.Global])
}

// ownDC stands for the account's own data centre in the tracker of floods. Its number is
// not known before a connection is, and a flood of that time has to be found later.
const ownDC = 0

// SetDC tells the number of the data centre that the account lives in. Package client
// does it by itself; without it errors and events have a 0 there.
func (l *Limiter) SetDC(dc int) { l.home.Store(int64(dc)) }

// trackerDC is the data centre under which floods of one are known.
func (l *Limiter) trackerDC(dc int) int {
	if dc == int(l.home.Load()) {
		return ownDC
	}
	return dc
}

// number is the data centre's, as far as it is known.
func (l *Limiter) number(dc int) int {
	if dc == ownDC {
		return int(l.home.Load())
	}
	return dc
}

// Floods returns a copy of the floods that stand, sorted by data centre, method and
// chat, the account's own data centre first. It does not block.
func (l *Limiter) Floods() []flood.Record {
	records := l.tracker.Snapshot()
	for i := range records {
		records[i].DC = l.number(records[i].DC)
	}
	return records
}

// ClearFloods forgets the floods that match, all of them when match is nil, and
// returns how many. Of the calls that wait for one, one goes first, and the others
// follow when it came through. With a store it blocks while that is written. match must not
// call the limiter.
func (l *Limiter) ClearFloods(match func(flood.Record) bool) int {
	n := l.tracker.Clear(match)
	l.keeper.Remember(l.life)
	return n
}

// Refusals returns the permanent refusals that are counted, and the kinds of calls that are
// no longer sent because of them. It does not block.
func (l *Limiter) Refusals() []flood.Refusal { return l.breaker.Snapshot() }

// ClearRefusals forgets the permanent refusals that match, all of them when match is nil, and returns
// how many: calls of their kind are sent again. With a store it blocks while that is
// written. match must not call the limiter.
func (l *Limiter) ClearRefusals(match func(flood.Refusal) bool) int {
	n := l.breaker.Clear(match)
	l.keeper.Remember(l.life)
	return n
}

// tell tells the observer of the limiter. A panic of it is contained.
func (l *Limiter) tell(e Event) {
	if l.observer == nil {
		return
	}
	defer func() { _ = recover() }()
	l.observer.Observe(e)
}

// Close ends every wait, for tokens or for a flood to end, of all clients that share
// the limiter, with [ErrClosed], and refuses every later call. A client that ends closes
// its own calls by itself.
//
// Close saves what is still to be remembered, and waits for its goroutines to end. A store
// that hangs is given up on after two seconds, provided that it ends when its context does;
// what it was to save is lost. An observer that is being told of a store is waited for, but
// no longer than two seconds more: it may be the one who calls Close.
func (l *Limiter) Close() {
	l.end()
	l.limiter.Close()
	l.keeper.Close()
	l.reporter.Close()
}
