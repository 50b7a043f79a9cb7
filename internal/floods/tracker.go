package floods

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/flood"
)

// Options of a [Tracker].
type Options struct {
	// Clock is the source of time, clock.System when nil. Deadlines of contexts
	// are on the system's clock all the same.
	Clock clock.Clock
	// Journal keeps what changes for [Tracker.Changes]. Without it Changes is empty. Should
	// nobody ask, it grows no further than the floods whose deadline is to come.
	Journal bool
}

// Tracker remembers the floods of one account: what is not to be sent, and until
// when. It is safe for concurrent use and starts no goroutine.
//
// A call goes through it like this:
//
//	pass, err := book.Wait(ctx, call, limit) // waits, or refuses
//	// … acquire what else the call needs …
//	if book.Covered(call, pass) {
//		// a flood arrived in the meantime: give back, Wait again
//	}
//	book.Start(&pass)
//	// … send …
//	// then one of: Passed(pass), Flooded(pass, notice), Abandon(pass)
//
// Memory is bounded by the floods that stand: one that is over, with nobody
// waiting for it, is dropped by the next flood, or by the next call that comes by, one that
// was the account's a minute later.
type Tracker struct {
	clock clock.Clock

	// size is len(records), and seq the number of the latest flood, for those
	// who want to know without the mutex.
	size atomic.Int64
	seq  atomic.Uint64

	mu      sync.RWMutex // shared by those who change nothing at all
	records map[key]*record
	classes [6]int         // records by key.class
	swept   time.Time      // when what was over was removed last
	through map[key]uint64 // by method and by account: the latest seq at which a call was sent that came through
	waiters *list.List     // of *waiter, in the order of arrival
	probes  uint64         // passes that went first so far; names them
	journal *journal       // nil: not kept
}

// New returns an empty book.
func New(opts Options) *Tracker {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	t := &Tracker{
		clock:   opts.Clock,
		records: map[key]*record{},
		through: map[key]uint64{},
		waiters: list.New(),
	}
	if opts.Journal {
		t.journal = &journal{entries: map[key]flood.Record{}, gone: map[key]gone{}}
	}
	return t
}

// Snapshot returns a copy of the floods that stand, sorted by DC, method, chat
// and scope. It does not block.
func (t *Tracker) Snapshot() []flood.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	t.sweep(now)
	var out []flood.Record
	for _, r := range t.records {
		if r.stands(now) {
			out = append(out, r.public())
		}
	}
	sortRecords(out)
	return out
}

// Clear forgets the floods that match, all of them when match is nil, and returns
// how many that were. match runs under the book's lock: it must not call the book.
//
// Calls that wait are not let out together, for the flood may stand after all:
// one goes first, as after a deadline, and the others follow when it came through.
func (t *Tracker) Clear(match func(flood.Record) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	n := 0
	for _, r := range t.records {
		if !r.stands(now) || match != nil && !match(r.public()) {
			continue
		}
		n++
		t.end(r, now)
	}
	t.sweep(now)
	return n
}

// end forgets the record, or its deadline where calls wait: one of them goes first.
func (t *Tracker) end(r *record, now time.Time) {
	t.journal.ended(r, now)
	if r.probe == 0 && r.waiting == 0 {
		delete(t.records, r.key)
		return
	}
	r.until, r.wait, r.repeats, r.vague, r.peeks = now, 0, 0, false, 0
	t.wake(r.key)
}

// AccountUntil returns when the account-wide flood of a data centre lets the next call go,
// of those that only read or of those that do not: when it ends, or before that a call may
// look whether the guess is right. It is the zero time when one may go now. It does not block.
func (t *Tracker) AccountUntil(dc int, reads bool) time.Time {
	if t.size.Load() == 0 {
		return time.Time{}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := t.records[Call{DC: dc, Reads: reads}.accountKey()]
	if r == nil {
		return time.Time{}
	}
	now := t.clock.Now()
	if r.left(now) <= 0 {
		return time.Time{} // over; who wants to go enters and queues behind the first
	}
	wait := max(r.free(now), r.first(now))
	if wait <= 0 {
		return time.Time{}
	}
	return now.Add(wait)
}

// find returns the records that cover the call, standing or not: the first n of rs.
func (t *Tracker) find(c Call) (rs [maxCovering]*record, n int) {
	ks, m := c.keys()
	for _, k := range ks[:m] {
		// Most floods are of one class: five lookups in six are spared.
		if t.classes[k.class()] == 0 {
			continue
		}
		if r := t.records[k]; r != nil {
			rs[n] = r
			n++
		}
	}
	return rs, n
}

// covering returns those that stand and are for the call.
func (t *Tracker) covering(c Call, now time.Time) (rs [maxCovering]*record, n int) {
	all, m := t.find(c)
	for _, r := range all[:m] {
		if r.stands(now) && !(r.inferred && isUpdates(c.Method)) {
			rs[n] = r
			n++
		}
	}
	return rs, n
}

// stale reports whether it is time to look for what is over, or the clock was set back.
func (t *Tracker) stale(now time.Time) bool {
	since := now.Sub(t.swept)
	return since < 0 || since >= time.Second
}

// sweep removes what is over. It has to run at the end of whatever changes the
// set of records.
func (t *Tracker) sweep(now time.Time) {
	t.classes = [6]int{}
	for k, r := range t.records {
		if r.until.Sub(now) > r.wait {
			r.until = now.Add(r.wait) // the clock was set back
			r.peek = now.Add(peekAfter(r.peeks))
		}
		if r.turn.Sub(now) > flood.FirstTimeout {
			r.turn = now.Add(flood.FirstTimeout)
		}
		if r.dead(now) {
			delete(t.records, k)
		} else {
			t.classes[k.class()]++
		}
	}
	if len(t.records) == 0 {
		// What was sent before a flood proves nothing about it: none is left
		// that the old numbers could speak of.
		clear(t.through)
	}
	t.journal.sweep(t.records, now)
	t.size.Store(int64(len(t.records)))
	t.swept = now
}
