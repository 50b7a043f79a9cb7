package flood

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"
)

// Options of a [Book].
type Options struct {
	// Clock is the source of time, clock.System when nil. Deadlines of contexts
	// are on the system's clock all the same.
	Clock clock.Clock
	// Journal keeps what changes for [Book.Changes]. Without it Changes is empty. Should
	// nobody ask, it grows no further than the floods whose deadline is to come.
	Journal bool
}

// Book remembers the floods of one account: what is not to be sent, and until
// when. It is safe for concurrent use and starts no goroutine.
//
// A call goes through it like this:
//
//	pass, err := book.Enter(ctx, call, limit) // waits, or refuses
//	// … acquire what else the call needs …
//	if book.Covered(call, pass) {
//		// a flood arrived in the meantime: give back, Enter again
//	}
//	book.Sent(&pass)
//	// … send …
//	// then one of: Passed(pass), Flooded(pass, notice), Left(pass)
//
// Memory is bounded by the floods that stand: one that is over, with nobody
// waiting for it, is dropped by the next flood, or by the next call that comes by, one that
// was the account's a minute later.
type Book struct {
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

// NewBook returns an empty book.
func NewBook(opts Options) *Book {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	b := &Book{
		clock:   opts.Clock,
		records: map[key]*record{},
		through: map[key]uint64{},
		waiters: list.New(),
	}
	if opts.Journal {
		b.journal = &journal{entries: map[key]Record{}, gone: map[key]gone{}}
	}
	return b
}

// Snapshot returns a copy of the floods that stand, sorted by DC, method, chat
// and scope. It does not block.
func (b *Book) Snapshot() []Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.sweep(now)
	var out []Record
	for _, r := range b.records {
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
func (b *Book) Clear(match func(Record) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	n := 0
	for _, r := range b.records {
		if !r.stands(now) || match != nil && !match(r.public()) {
			continue
		}
		n++
		b.end(r, now)
	}
	b.sweep(now)
	return n
}

// end forgets the record, or its deadline where calls wait: one of them goes first.
func (b *Book) end(r *record, now time.Time) {
	b.journal.ended(r, now)
	if r.probe == 0 && r.waiting == 0 {
		delete(b.records, r.key)
		return
	}
	r.until, r.wait, r.repeats, r.vague, r.peeks = now, 0, 0, false, 0
	b.wake(r.key)
}

// AccountUntil returns when the account-wide flood of a data centre lets the next call go,
// of those that only read or of those that do not: when it ends, or before that a call may
// look whether the guess is right. It is the zero time when one may go now. It does not block.
func (b *Book) AccountUntil(dc int, reads bool) time.Time {
	if b.size.Load() == 0 {
		return time.Time{}
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	r := b.records[Call{DC: dc, Reads: reads}.accountKey()]
	if r == nil {
		return time.Time{}
	}
	now := b.clock.Now()
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
func (b *Book) find(c Call) (rs [maxCovering]*record, n int) {
	ks, m := c.keys()
	for _, k := range ks[:m] {
		// Most floods are of one class: five lookups in six are spared.
		if b.classes[k.class()] == 0 {
			continue
		}
		if r := b.records[k]; r != nil {
			rs[n] = r
			n++
		}
	}
	return rs, n
}

// covering returns those that stand and are for the call.
func (b *Book) covering(c Call, now time.Time) (rs [maxCovering]*record, n int) {
	all, m := b.find(c)
	for _, r := range all[:m] {
		if r.stands(now) && !(r.inferred && isUpdates(c.Method)) {
			rs[n] = r
			n++
		}
	}
	return rs, n
}

// stale reports whether it is time to look for what is over, or the clock was set back.
func (b *Book) stale(now time.Time) bool {
	since := now.Sub(b.swept)
	return since < 0 || since >= time.Second
}

// sweep removes what is over. It has to run at the end of whatever changes the
// set of records.
func (b *Book) sweep(now time.Time) {
	b.classes = [6]int{}
	for k, r := range b.records {
		if r.until.Sub(now) > r.wait {
			r.until = now.Add(r.wait) // the clock was set back
			r.peek = now.Add(peekAfter(r.peeks))
		}
		if r.turn.Sub(now) > FirstTimeout {
			r.turn = now.Add(FirstTimeout)
		}
		if r.dead(now) {
			delete(b.records, k)
		} else {
			b.classes[k.class()]++
		}
	}
	if len(b.records) == 0 {
		// What was sent before a flood proves nothing about it: none is left
		// that the old numbers could speak of.
		clear(b.through)
	}
	b.journal.sweep(b.records, now)
	b.size.Store(int64(len(b.records)))
	b.swept = now
}
