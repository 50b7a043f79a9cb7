package invoke

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/ratelimit"
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

// LimiterOptions of a [Limiter]. The zero value is ready for use.
type LimiterOptions struct {
	// RateLimits change the default limits. A change that names only the rate
	// keeps the default burst, and the other way round.
	RateLimits map[classify.Category]ratelimit.Change
	// Chats are the limits of each chat, in front of the category's.
	Chats ChatLimits
	// Gates are the program's own, in front of the chat's, at most [MaxKeyedGates]. A
	// call passes them in this order: name the narrowest first.
	Gates []KeyedGate
	// MaxWaiters bounds the queue of each category and chat, in each lane; 0 for no
	// bound. Beyond it calls are refused with ratelimit.ErrQueueFull.
	MaxWaiters int
	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock
}

// Limiter is what the clients of one account share: a gate for each category, the
// global gate, those of chats and of the program, and the floods that are known. It is
// safe for concurrent use and has no goroutine.
type Limiter struct {
	limiter *ratelimit.Limiter
	gates   [classify.Global + 1]ratelimit.Gate // by category; the first is unused
	byName  map[string]*ratelimit.Gates         // the keyed ones
	keyed   []keyedGates                        // those with a key function
	private *ratelimit.Gates
	group   *ratelimit.Gates
	paid    *ratelimit.Gates
	book    *flood.Book
	clock   clock.Clock
	home    atomic.Int64 // the account's data centre, 0 while unknown
	bot     atomic.Bool  // the account is one

	chatMode ChatMode

	life context.Context // done after Close
	end  context.CancelFunc
}

// NewLimiter returns a limiter with full buckets. The error names every limit that is
// out of range, every category that does not exist, and every gate that is wrong.
func NewLimiter(opts LimiterOptions) (*Limiter, error) {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	life, end := context.WithCancel(context.Background())
	l := &Limiter{
		life: life, end: end,
		limiter: ratelimit.New(ratelimit.Options{Clock: opts.Clock}),
		book:    flood.NewBook(flood.Options{Clock: opts.Clock}),
		clock:   opts.Clock,
		byName:  map[string]*ratelimit.Gates{},
	}
	limits := DefaultLimits()
	errs := []error{checkCategories(opts.RateLimits)}
	if opts.MaxWaiters < 0 {
		errs = append(errs, fmt.Errorf("MaxWaiters is %d: want 0 for no bound, or more", opts.MaxWaiters))
	}
	for _, category := range classify.Categories() {
		gate, err := l.newGate(category.String(), opts.RateLimits[category], limits[category])
		if err != nil {
			errs = append(errs, fmt.Errorf("rate limits: %w", err))
			continue
		}
		gate.SetMaxWaiters(opts.MaxWaiters)
		l.gates[category] = gate
	}
	errs = append(errs, l.addKeyed(opts))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l, nil
}

// newGate makes a gate of a default with a change.
func (l *Limiter) newGate(name string, change ratelimit.Change, standard ratelimit.Rule) (ratelimit.Gate, error) {
	rule, err := change.Apply(standard)
	if err != nil {
		return ratelimit.Gate{}, named(name, err)
	}
	return l.limiter.NewGate(name, rule)
}

func named(gate string, err error) error {
	if bad, ok := errors.AsType[*ratelimit.LimitError](err); ok {
		bad.Gate = gate
	}
	return err
}

func checkCategories(changes map[classify.Category]ratelimit.Change) error {
	var errs []error
	for category := range changes {
		if !category.Valid() {
			errs = append(errs, fmt.Errorf("rate limits: %v is no category: want one of %v", category, classify.Categories()))
		}
	}
	return errors.Join(errs...)
}

// UpdateLimits changes limits under the calls that wait: heads of queues reckon
// again at once. What a change does not name stays, and so do the tokens, cut to
// the new burst. Either all changes are made or, with an error that names those that
// are bad, none. It does not block.
func (l *Limiter) UpdateLimits(changes map[classify.Category]ratelimit.Change) error {
	if err := checkCategories(changes); err != nil {
		return err
	}
	byGate := make(map[ratelimit.Gate]ratelimit.Change, len(changes))
	for category, change := range changes {
		byGate[l.gates[category]] = change
	}
	if err := l.limiter.Update(byGate); err != nil {
		return fmt.Errorf("rate limits: %w", err)
	}
	return nil
}

// Congestion is that of the fullest category, the global gate included: 0 when all are
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
	if until := l.book.AccountUntil(ownDC, reads(category)); !until.IsZero() {
		return nil, &flood.WaitError{
			Method: category.String(), Kind: flood.FloodWait, Scope: flood.Account, Reason: flood.KnownFlood,
			Wait: until.Sub(l.clock.Now()), Until: until,
		}
	}
	return l.limiter.TryAcquire(1, l.gates[category], l.gates[classify.Global])
}

// ownDC stands for the account's own data centre in the book of floods. Its number is
// not known before a connection is, and a flood of that time has to be found later.
const ownDC = 0

// SetDC tells the number of the data centre that the account lives in. Package client
// does it by itself; without it errors and events have a 0 there.
func (l *Limiter) SetDC(dc int) { l.home.Store(int64(dc)) }

// bookDC is the data centre under which floods of one are known.
func (l *Limiter) bookDC(dc int) int {
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
	records := l.book.Snapshot()
	for i := range records {
		records[i].DC = l.number(records[i].DC)
	}
	return records
}

// ClearFloods forgets the floods that match, all of them when match is nil, and
// returns how many. Of the calls that wait for one, one goes first, and the others
// follow when it came through. match must not call the limiter.
func (l *Limiter) ClearFloods(match func(flood.Record) bool) int { return l.book.Clear(match) }

// Close ends every wait, for tokens or for a flood to end, of all clients that share
// the limiter, with [ErrClosed], and refuses every later call. A client that ends closes
// its own calls by itself.
func (l *Limiter) Close() {
	l.end()
	l.limiter.Close()
}
