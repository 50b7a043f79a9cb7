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
	// Journal keeps what changes for [Tracker.Changes]. Without it Changes is empty. If
	// nobody calls Changes, the journal holds no more floods than have a deadline to come.
	Journal bool
}

// Tracker remembers the floods of one account: what is not to be sent, and until
// when. It is safe for concurrent use and starts no goroutine.
//
// A call goes through it like this:
//
//	pass, err := tracker.Wait(ctx, call, limit) // waits, or refuses
//	// … acquire what else the call needs …
//	if tracker.Covered(call, pass) {
//		// a flood arrived in the meantime: give back, Wait again
//	}
//	tracker.Start(&pass)
//	// … send …
//	// then one of: Passed(pass), Flooded(pass, notice), Abandon(pass)
//
// These three are not one method with an outcome: each returns something else, and Abandon
// is also for a pass that was never used.
//
// Memory is bounded by the floods that stand: one that is over, with no call waiting for it,
// is dropped by the next flood, or by the next call a second later. A flood of the account is
// kept for up to a minute more.
type Tracker struct {
	clock clock.Clock
	epoch time.Time // by which passes tell when their calls were sent

	// size is len(records), and seq the number of the latest flood. They are atomic so that a
	// call can read them without the mutex.
	size atomic.Int64
	seq  atomic.Uint64

	mu       sync.RWMutex // shared by calls that change nothing
	records  map[key]*record
	classes  [6]int             // records by key.class
	ends     deadlines[*record] // by when each may be forgotten
	evidence map[key][]*record  // by the scope that they are evidence for, see Tracker.index
	looked   int                // records looked at one by one, for a test of the cost
	swept    time.Time          // when what was over was removed last
	through  map[key]uint64     // by method and by account: the latest seq at which a call was sent that came through
	history  history
	waiters  *list.List // of *waiter, in the order of arrival
	probes   uint32     // number of the last
	journal  *journal   // nil: not kept
}

// New returns a tracker that knows of no flood.
func New(opts Options) *Tracker {
	if opts.Clock == nil {
		opts.Clock = clock.System
	}
	t := &Tracker{
		clock:    opts.Clock,
		epoch:    opts.Clock.Now(),
		records:  map[key]*record{},
		evidence: map[key][]*record{},
		through:  map[key]uint64{},
		history:  newHistory(),
		waiters:  list.New(),
	}
	if opts.Journal {
		t.journal = newJournal()
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
// how many that were. match runs under the tracker's lock: it must not call the tracker.
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
		t.remove(r)
		return
	}
	r.until, r.wait, r.repeats, r.vague, r.probed = now, 0, 0, false, 0
	t.schedule(r)
	t.wake(r.key)
}

// AccountUntil returns when the account-wide flood of a data centre lets the next call go,
// of those that only read or of those that do not: when it ends, or before that a call may
// probe whether the guess is right. It is the zero time when one may go now. It does not block.
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
		return time.Time{} // over; a call that comes now queues behind the probe
	}
	wait := max(r.free(now), r.answerDue(now))
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

// add returns a new record for the key, in place of one that is dead.
func (t *Tracker) add(k key) *record {
	if old := t.records[k]; old != nil {
		t.remove(old)
	}
	r := &record{key: k}
	t.records[k] = r
	t.classes[k.class()]++
	t.size.Store(int64(len(t.records)))
	return r
}

// remove forgets a record at once.
func (t *Tracker) remove(r *record) {
	delete(t.records, r.key)
	t.classes[r.class()]--
	t.ends.remove(r)
	t.unlist(r)
	t.journal.removed(r.key)
	t.size.Store(int64(len(t.records)))
}

// schedule has to run whenever a record may be forgotten earlier than it was.
func (t *Tracker) schedule(r *record) { t.ends.set(r, r.forgetAt()) }

// stale reports whether it is time to look for what is over, or the clock was set back.
func (t *Tracker) stale(now time.Time) bool {
	since := now.Sub(t.swept)
	return since < 0 || since >= time.Second
}

// sweep removes what is over. It costs as much as there is to remove.
func (t *Tracker) sweep(now time.Time) {
	if now.Before(t.swept) {
		t.rebase(now)
	}
	for r, ok := t.ends.first(now); ok; r, ok = t.ends.first(now) {
		t.looked++
		if r.dead(now) {
			t.remove(r)
			continue
		}
		due := r.forgetAt()
		if !due.After(now) { // calls wait for its probe
			due = now.Add(time.Second)
		}
		t.ends.set(r, due)
	}
	if len(t.records) == 0 {
		// What was sent before a flood proves nothing about it: none is left
		// that the old numbers could speak of.
		clear(t.through)
	}
	t.journal.sweep(now)
	t.swept = now
}

// rebase makes no wait longer than it was ordered after the clock was set back.
func (t *Tracker) rebase(now time.Time) {
	for _, r := range t.records {
		t.looked++
		if r.until.Sub(now) > r.wait {
			r.until = now.Add(r.wait)
			r.nextProbe = now.Add(probeAfter(r.probed))
		}
		if r.probeUntil.Sub(now) > flood.FirstTimeout {
			r.probeUntil = now.Add(flood.FirstTimeout)
		}
		t.schedule(r)
	}
}
