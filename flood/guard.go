package flood

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
)

const (
	// DefaultRefusalLimit is how many refusals of a kind, within
	// [DefaultRefusalPeriod], a guard watches before it refuses by itself.
	DefaultRefusalLimit = 20
	// DefaultRefusalPeriod is how far back a guard counts.
	DefaultRefusalPeriod = 10 * time.Minute
	// maxRefusalLimit bounds Limit: the guard keeps the time of each.
	maxRefusalLimit = 1000
	// maxRefusals bounds the kinds and methods that a guard counts. There are fewer
	// methods that can be refused.
	maxRefusals = 1024
)

// GuardOptions of a [Guard]. The zero value is ready for use.
type GuardOptions struct {
	// Limit is how many refusals of a kind within Period are enough, 1 to 1000;
	// [DefaultRefusalLimit] when 0.
	Limit int
	// Period is above zero; [DefaultRefusalPeriod] when 0.
	Period time.Duration
	// Off counts nothing and refuses nothing. Answers become a [*RefusalError] all the
	// same.
	Off bool
	// Clock is the source of time, clock.System when nil.
	Clock clock.Clock
	// Journal keeps what changes for [Guard.Changes]. Without it Changes is empty.
	Journal bool
}

// Guard counts an account's refusals that never pass, and refuses in the server's place
// once there were too many of a kind: Telegram bans accounts whose clients hammer on. It is
// safe for concurrent use and starts no goroutine.
//
//	if err := guard.Check(call); err != nil {
//		return err // not sent
//	}
//	err := … send …
//	if err == nil {
//		guard.Passed(call)
//	} else {
//		err, tripped = guard.Refused(call, err)
//	}
//
// Memory is bounded by 1024 kinds and methods, each with Limit times.
type Guard struct {
	opts GuardOptions

	// counted is len(counts), tripped how many of them have, and pending len(changed),
	// for those who want to know without the mutex.
	counted, tripped, pending atomic.Int64

	mu      sync.RWMutex // shared by those who change nothing at all
	counts  map[refusalKey]*Refusal
	sweepAt time.Time           // when to look again for what is over
	changed map[refusalKey]bool // nil: not kept
	// cleared is when refusals were forgotten. What a store tells of them may be older.
	cleared map[refusalKey]time.Time
}

// refusalKey is what a refusal concerns.
type refusalKey struct {
	kind   RefusalKind
	method string // empty: all that need a login
	dc     int
}

// NewGuard returns a guard that has seen nothing. The error names every option that is
// out of range.
func NewGuard(opts GuardOptions) (*Guard, error) {
	var errs []error
	if opts.Limit < 0 || opts.Limit > maxRefusalLimit {
		errs = append(errs, fmt.Errorf("refusals: Limit is %d: want 1 to %d, or 0 for %d; to count none, say Off", opts.Limit, maxRefusalLimit, DefaultRefusalLimit))
	}
	if opts.Period < 0 {
		errs = append(errs, fmt.Errorf("refusals: Period is %v: want a duration above zero, or 0 for %v", opts.Period, DefaultRefusalPeriod))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	opts.Limit = cmp.Or(opts.Limit, DefaultRefusalLimit)
	opts.Period = cmp.Or(opts.Period, DefaultRefusalPeriod)
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	g := &Guard{opts: opts, counts: map[refusalKey]*Refusal{}, cleared: map[refusalKey]time.Time{}}
	if opts.Journal {
		g.changed = map[refusalKey]bool{}
	}
	return g, nil
}

// Check returns a [*RefusalError] that is Local if the call is not to be sent, because
// too many of its like were refused. It does not block, and costs an atomic load while
// the guard has not tripped.
func (g *Guard) Check(call Call) error {
	if g.tripped.Load() == 0 {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	ks, first := concerns(call)
	for _, k := range ks[first:] {
		if r := g.counts[k]; r != nil && !r.Tripped.IsZero() {
			e := r.refuse(call)
			e.Local, e.Server = true, tgerr.New(r.Code, r.Message)
			return e
		}
	}
	return nil
}

func (r *Refusal) refuse(call Call) *RefusalError {
	return &RefusalError{
		Kind: r.Kind, Method: call.Method, Chat: call.Chat, DC: call.DC, Count: len(r.At), Since: r.At[0],
	}
}

// Refused turns an answer that is one of the refusals into a [*RefusalError], counts
// it, and tells whether with this one there were too many: that is said once, until the
// guard is cleared. Any other error, one that a guard made included, is returned as it is.
// Refused does not block.
func (g *Guard) Refused(call Call, err error) (refused error, tripped bool) {
	server, ok := tgerr.As(err)
	if !ok || errors.Is(err, ErrRefused) {
		return err, false
	}
	kind := refusalKind(call.Method, server)
	if kind == 0 {
		return err, false
	}
	e := &RefusalError{Kind: kind, Method: call.Method, Chat: call.Chat, DC: call.DC, Server: server, cause: err}
	k, counts := kind.reach(call, server)
	if g.opts.Off || !counts {
		return e, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now()
	r := g.counts[k]
	if r == nil {
		g.sweep(now)
		if len(g.counts) >= maxRefusals {
			return e, false
		}
		r = &Refusal{Kind: kind, Method: k.method, DC: k.dc}
		g.counts[k] = r
	}
	r.Code, r.Message = server.Code, cmp.Or(server.Message, server.Type)
	r.At = g.window(append(r.At, now), now)
	e.Count, e.Since = len(r.At), r.At[0]
	if r.Tripped.IsZero() && len(r.At) >= g.opts.Limit {
		r.Tripped, tripped = now, true
	}
	g.note(k)
	g.tally()
	return e, tripped
}

// window returns those that count, the latest Limit of them.
func (g *Guard) window(at []time.Time, now time.Time) []time.Time {
	at = slices.DeleteFunc(at, func(t time.Time) bool { return t.After(now) || now.Sub(t) >= g.opts.Period })
	return g.latest(at)
}

func (g *Guard) latest(at []time.Time) []time.Time {
	return slices.Delete(at, 0, max(0, len(at)-g.opts.Limit))
}

// Passed notes that the server answered the call without an error, and tells how many
// refusals that had tripped it cleared.
//
// A success refutes refusals of its like that are still being counted: they start over.
// Not so PEER_FLOOD: an account that may not write to strangers may write to
// contacts, and that it can proves nothing.
//
// A success of a call that needs a login proves that the key of its data centre is good
// and that the account is not banned: it clears those refusals even if they have tripped,
// and so does auth.importAuthorization for the key. A login clears what [Guard.LoggedIn]
// says. Nothing else clears what has tripped.
//
// Passed does not block, and costs an atomic load while nothing is counted.
func (g *Guard) Passed(call Call) (cleared int) {
	if g.counted.Load() == 0 {
		return 0
	}
	if logsIn(call.Method) {
		return g.LoggedIn()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now()
	if !now.Before(g.sweepAt) {
		g.sweep(now)
	}
	counted := len(g.counts)
	forget := func(k refusalKey, evenTripped bool) {
		r := g.counts[k]
		if r == nil || r.Kind == SpamLimited || !r.Tripped.IsZero() && !evenTripped {
			return
		}
		if !r.Tripped.IsZero() {
			cleared++
		}
		g.forget(k, now)
	}
	ks, first := concerns(call)
	for _, k := range ks[first:] {
		forget(k, first == 0 && k.method == "") // what a login mends
	}
	if provesKey(call.Method) {
		forget(refusalKey{kind: AuthGone, dc: call.DC}, true)
	}
	if len(g.counts) < counted {
		g.tally()
	}
	return cleared
}

// LoggedIn clears what a login mends, an account that was banned and keys that are gone,
// and returns how many of that had tripped. Passed does it for methods that do nothing but
// log in. Call LoggedIn when the answer to another call carries an authorization:
// auth.exportLoginToken, auth.importLoginToken and auth.sendCode may log in too. It does
// not block, and costs an atomic load while nothing is counted.
func (g *Guard) LoggedIn() (cleared int) {
	if g.counted.Load() == 0 {
		return 0
	}
	g.Clear(func(r Refusal) bool {
		mended := r.Kind == AccountBanned || r.Kind == AuthGone
		if mended && !r.Tripped.IsZero() {
			cleared++
		}
		return mended
	})
	return cleared
}

// Clear forgets the refusals that match, all of them when match is nil, and returns
// how many that were, those included that had not tripped. match runs under the guard's
// lock: it must not call the guard.
func (g *Guard) Clear(match func(Refusal) bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now()
	g.sweep(now)
	n := 0
	for k, r := range g.counts {
		if match == nil || match(r.clone()) {
			n++
			g.forget(k, now)
		}
	}
	g.tally()
	return n
}

// forget drops what is counted under the key.
func (g *Guard) forget(k refusalKey, now time.Time) {
	delete(g.counts, k)
	g.cleared[k] = now
	g.note(k)
}

// Snapshot returns a copy of what is counted and of what has tripped, sorted by kind, DC and
// method. It does not block.
func (g *Guard) Snapshot() []Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(g.opts.Clock.Now())
	var out []Refusal
	for _, r := range g.counts {
		out = append(out, r.clone())
	}
	sortRefusals(out)
	return out
}

func (r *Refusal) clone() Refusal {
	c := *r
	c.At = slices.Clone(r.At)
	return c
}

func sortRefusals(refusals []Refusal) {
	slices.SortFunc(refusals, func(x, y Refusal) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.DC, y.DC), cmp.Compare(x.Method, y.Method))
	})
}

// sweep drops counts that are over. Of those nobody has to be told.
func (g *Guard) sweep(now time.Time) {
	maps.DeleteFunc(g.cleared, func(_ refusalKey, at time.Time) bool { return now.Sub(at) > echo })
	for k, r := range g.counts {
		if !r.Tripped.IsZero() {
			continue
		}
		if r.At = g.window(r.At, now); len(r.At) == 0 {
			delete(g.counts, k)
			delete(g.changed, k)
		}
	}
	g.sweepAt = now.Add(g.opts.Period)
	g.tally()
}

// tally has to run at the end of whatever changes the counts.
func (g *Guard) tally() {
	tripped := 0
	for _, r := range g.counts {
		if !r.Tripped.IsZero() {
			tripped++
		}
	}
	g.counted.Store(int64(len(g.counts)))
	g.tripped.Store(int64(tripped))
	g.pending.Store(int64(len(g.changed)))
}
