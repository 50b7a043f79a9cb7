package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
)

const (
	// DefaultLimit is how many refusals of a kind within [DefaultPeriod] trip a breaker.
	// Telegram publishes no figure. Twenty leaves room for a program that tries a few chats.
	DefaultLimit = 20
	// DefaultPeriod is how long refusals of a kind are counted together.
	DefaultPeriod = 10 * time.Minute
	// maxKinds bounds the kinds and methods that are counted. A layer has fewer methods.
	maxKinds = 1024
	// echo is how long a store may still report a refusal that was cleared here.
	echo = time.Minute
)

// Options of a [Breaker]. The zero value is ready for use.
type Options struct {
	// Limit is how many refusals of a kind within Period trip the breaker, 1 or more;
	// [DefaultLimit] when 0.
	Limit int
	// Period is above zero; [DefaultPeriod] when 0.
	Period time.Duration
	// Off counts nothing and stops nothing. Refusals become a [*flood.PermanentError] all
	// the same.
	Off bool
	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock
}

// Breaker counts the permanent refusals of one account and stops calls after too many. It
// is safe for concurrent use, starts no goroutine, and no method blocks.
//
//	if err := b.Check(call); err != nil {
//		return err // not sent
//	}
//	err := … send …
//	if err == nil {
//		b.Passed(call)
//	} else {
//		err, tripped = b.Refused(call, err)
//	}
//
// Memory is bounded: at most 1024 kinds and methods are counted.
type Breaker struct {
	opts Options

	// counted is len(counts), and pending len(changed). They spare calls the mutex while
	// nothing is refused.
	counted, pending atomic.Int64

	mu      sync.Mutex
	counts  map[key]*flood.Refusal
	changed map[key]bool      // tripped or cleared since Changes was last called
	cleared map[key]time.Time // when a trip was cleared lately
}

// New returns a breaker that has seen nothing. The error names every option that is out
// of range.
func New(opts Options) (*Breaker, error) {
	var errs []error
	if opts.Limit < 0 {
		errs = append(errs, fmt.Errorf("Refusals.Limit is %d: want 1 or more, or 0 for %d; to stop nothing, set Off", opts.Limit, DefaultLimit))
	}
	if opts.Period < 0 {
		errs = append(errs, fmt.Errorf("Refusals.Period is %v: want a duration above zero, or 0 for %v", opts.Period, DefaultPeriod))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	opts.Limit = cmp.Or(opts.Limit, DefaultLimit)
	opts.Period = cmp.Or(opts.Period, DefaultPeriod)
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	return &Breaker{opts: opts, counts: map[key]*flood.Refusal{}, changed: map[key]bool{}, cleared: map[key]time.Time{}}, nil
}

// Check returns a [*flood.PermanentError] that is Local if the call is not to be sent. It
// costs an atomic load while nothing is counted.
func (b *Breaker) Check(call Call) error {
	if b.counted.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range reaching(call) {
		if r := b.counts[k]; r != nil && !r.Tripped.IsZero() {
			e := call.refused(k.kind)
			e.Count, e.Since, e.Local, e.Server = r.Count, r.Since, true, tgerr.New(r.Code, r.Message)
			return e
		}
	}
	return nil
}

// Refused turns an answer that is a permanent refusal into a [*flood.PermanentError],
// counts it, and reports whether the breaker tripped with it, which it does once until it
// is cleared. Any other error is returned as it is, and so is one that a breaker made.
func (b *Breaker) Refused(call Call, err error) (refused error, tripped bool) {
	server, ok := tgerr.As(err)
	if !ok || errors.Is(err, flood.ErrPermanent) {
		return err, false
	}
	kind := kindOf(call.Method, server)
	if kind == 0 {
		return err, false
	}
	e := call.refused(kind)
	e.Server, e.Err = server, err
	k, counts := counting(call, kind, server)
	if b.opts.Off || !counts {
		return e, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Clock.Now()
	b.sweep(now)
	r := b.counts[k]
	if r == nil {
		if len(b.counts) >= maxKinds {
			return e, false
		}
		r = &flood.Refusal{Kind: kind, Method: k.method, DC: k.dc, Since: now}
		b.counts[k] = r
	}
	r.Count++
	r.Code, r.Message = server.Code, cmp.Or(server.Message, server.Type)
	e.Count, e.Since = r.Count, r.Since
	if r.Tripped.IsZero() && r.Count >= b.opts.Limit {
		r.Tripped, tripped = now, true
		b.note(k)
	}
	b.tally()
	return e, tripped
}

// Passed notes that the server answered the call without an error, and returns how many
// trips that cleared.
//
// A success proves that calls of its method are not refused: their count starts over. It
// proves nothing about PEER_FLOOD, since an account that may not write to strangers may
// still write to its contacts.
//
// A success of a call that needs a login proves that the key of its data centre is good
// and that the account is not banned. It clears those even if they have tripped, and so
// does auth.importAuthorization for the key. A login clears what [Breaker.LoggedIn] says.
// Nothing else clears a trip but [Breaker.Clear].
//
// Passed costs an atomic load while nothing is counted.
func (b *Breaker) Passed(call Call) (cleared int) {
	if b.counted.Load() == 0 {
		return 0
	}
	if logsIn(call.Method) {
		return b.LoggedIn()
	}
	refuted := reaching(call)
	if provesKey(call.Method) {
		refuted[0] = key{kind: flood.AuthGone, dc: call.DC}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Clock.Now()
	b.sweep(now)
	for _, k := range refuted {
		r := b.counts[k]
		if r == nil || k.kind == flood.SpamLimited {
			continue
		}
		switch {
		case r.Tripped.IsZero():
			b.forget(k, now)
		case k.method == "":
			b.forget(k, now)
			cleared++
		}
	}
	b.tally()
	return cleared
}

// LoggedIn clears what a login mends, a banned account and lost keys, and returns how many
// of those had tripped. Passed does it for methods that do nothing but log in. Call
// LoggedIn when the answer to another call carries an authorization, as that to
// auth.exportLoginToken may. It costs an atomic load while nothing is counted.
func (b *Breaker) LoggedIn() (cleared int) {
	if b.counted.Load() == 0 {
		return 0
	}
	b.Clear(func(r flood.Refusal) bool {
		mended := r.Kind == flood.AccountBanned || r.Kind == flood.AuthGone
		if mended && !r.Tripped.IsZero() {
			cleared++
		}
		return mended
	})
	return cleared
}

// Clear forgets the refusals that match, all of them when match is nil, and returns how
// many, counts that have not tripped included. match must not call the breaker.
func (b *Breaker) Clear(match func(flood.Refusal) bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Clock.Now()
	b.sweep(now)
	for k, r := range b.counts {
		if match == nil || match(*r) {
			b.forget(k, now)
			n++
		}
	}
	b.tally()
	return n
}

// Snapshot returns what is counted and what has tripped, sorted by kind, data centre and
// method.
func (b *Breaker) Snapshot() []flood.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(b.opts.Clock.Now())
	b.tally()
	var all []flood.Refusal
	for _, k := range slices.SortedFunc(maps.Keys(b.counts), key.compare) {
		all = append(all, *b.counts[k])
	}
	return all
}

// forget drops what is counted under the key. A trip is kept elsewhere too.
func (b *Breaker) forget(k key, now time.Time) {
	if !b.counts[k].Tripped.IsZero() {
		b.cleared[k] = now
		b.note(k)
	}
	delete(b.counts, k)
}

// note marks the key as changed. Keys that were cleared add up until somebody calls Changes,
// so there is a bound.
func (b *Breaker) note(k key) {
	if len(b.changed) < 2*maxKinds {
		b.changed[k] = true
	}
}

// sweep drops counts whose period is over, or has not begun because the clock was set back.
func (b *Breaker) sweep(now time.Time) {
	maps.DeleteFunc(b.counts, func(_ key, r *flood.Refusal) bool {
		return r.Tripped.IsZero() && (now.Sub(r.Since) >= b.opts.Period || r.Since.After(now))
	})
	maps.DeleteFunc(b.cleared, func(_ key, at time.Time) bool { return now.Sub(at) >= echo })
}

// tally has to run after every change.
func (b *Breaker) tally() {
	b.counted.Store(int64(len(b.counts)))
	b.pending.Store(int64(len(b.changed)))
}
