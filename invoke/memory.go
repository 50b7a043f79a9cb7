package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/learn"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// The keys under which facts are kept begin with what they are about. Those of floods and
// refusals are made by package flood.
const (
	floodFact   = "flood/"
	refusalFact = "refusal/"
	rateFact    = "rate/"
	limitFact   = "limit/"
)

const (
	// rateKept is how long a learned rate is remembered: what an account may do a month
	// later is another question.
	rateKept = 30 * 24 * time.Hour
	// refusalKept is how long a refusal that never passes is, unless it is cleared.
	refusalKept = 365 * 24 * time.Hour
	// limitsKept is how long a change of the limits reaches processes that start later.
	limitsKept = 24 * time.Hour
	// rateEvery is how often the growth of a rate is written down. What is lost grows again.
	rateEvery = 10 * time.Second
	// storePatience bounds one look at the store.
	storePatience = 2 * time.Second
	// watchPause is how long to wait before a store that was lost is asked again, at
	// first, and at most.
	watchPause, longestWatchPause = 100 * time.Millisecond, 5 * time.Second
)

// minKept is the shortest flood that is worth remembering over a restart.
const minKept = 2 * time.Second

// keeper keeps what the limiter has to remember beyond the process.
type keeper struct {
	memory store.Memory
	shared bool        // with other processes of the account
	report func(error) // does not block
	ended  sync.WaitGroup

	// turn is had by whoever saves: one at a time, so that none overtakes a later one.
	turn chan struct{}
	// loss has a value when the store was lost, for the one who tries it again.
	loss chan struct{}

	mu      sync.Mutex            // never held while the store is asked
	pending map[string]store.Fact // not saved yet
	next    time.Time             // when growth is worth a save
	lost    bool
}

func newKeeper(memory store.Memory, shared bool, report func(error)) *keeper {
	return &keeper{
		memory: memory, shared: shared, report: report,
		turn: make(chan struct{}, 1), loss: make(chan struct{}, 1), pending: map[string]store.Fact{},
	}
}

// save writes what is pending. A store that is lost is left to who tries it again, so that
// no call waits for it.
func (k *keeper) save(ctx context.Context) {
	if k.isLost() {
		return
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-k.turn }()
	if !k.isLost() { // meanwhile
		k.write(ctx)
	}
}

// write writes what is pending, and asks the store whether it is there if nothing is. The
// caller has the turn.
func (k *keeper) write(ctx context.Context) (err error) {
	k.mu.Lock()
	batch := k.pending
	k.pending = map[string]store.Fact{}
	k.mu.Unlock()

	bounded, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	if len(batch) == 0 {
		_, err = k.memory.Load(bounded)
	} else {
		err = k.memory.Save(bounded, slices.Collect(maps.Values(batch))...)
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		maps.Copy(batch, k.pending) // what is newer
		k.pending = batch
	}
	if ctx.Err() == nil { // else it was not the store that failed
		k.noteLocked(err)
	}
	return err
}

func (k *keeper) isLost() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost
}

func (k *keeper) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLocked(err)
}

// noteLocked tells of a store that is lost, and of one that is back, once.
func (k *keeper) noteLocked(err error) {
	if lost := err != nil; lost == k.lost {
		return
	}
	k.lost = err != nil
	k.report(err)
	if k.lost {
		select {
		case k.loss <- struct{}{}:
		default:
		}
	}
}

// recall brings back what was remembered, before the first call. With the policy Closed a
// store that cannot be read is an error: a flood may stand that is not known.
func (l *Limiter) recall(policy store.Policy) error {
	ctx, cancel := context.WithTimeout(l.life, storePatience)
	defer cancel()
	facts, err := l.keeper.memory.Load(ctx)
	if err != nil && policy == store.Closed {
		return fmt.Errorf("memory: %w", err)
	}
	l.keeper.note(err)
	for _, fact := range facts {
		l.told(fact)
	}
	return nil
}

// watch takes in what other processes met, until the limiter is closed.
func (l *Limiter) watch() {
	pause := watchPause
	for {
		began := l.clock.Now()
		err := l.keeper.memory.Watch(l.life, l.told)
		if l.life.Err() != nil {
			return
		}
		l.keeper.note(err)
		if l.clock.Now().Sub(began) > longestWatchPause {
			pause = watchPause
		}
		if !l.rest(pause) {
			return
		}
		pause = min(2*pause, longestWatchPause)
	}
}

// catchUp asks a store that was lost whether it is back, and saves what it has missed, until
// the limiter is closed. A store that fails need not end what watches it.
func (l *Limiter) catchUp() {
	k := l.keeper
	for pause := watchPause; ; pause = min(2*pause, longestWatchPause) {
		if !k.isLost() {
			pause = watchPause
			select {
			case <-k.loss:
			case <-l.life.Done():
				return
			}
		}
		if !l.rest(pause) {
			return
		}
		k.turn <- struct{}{} // who has it is bounded
		_ = k.write(l.life)
		<-k.turn
	}
}

// rest reports false when the limiter is closed.
func (l *Limiter) rest(d time.Duration) bool {
	timer := l.clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-l.life.Done():
		return false
	}
}

// remember saves what has changed since the last time. It blocks while the store writes.
func (l *Limiter) remember() {
	k := l.keeper
	if k == nil {
		return
	}
	k.mu.Lock()
	l.gatherLocked()
	news := len(k.pending) > 0 && !k.lost
	k.mu.Unlock()
	if news {
		k.save(l.life)
	}
}

// finish saves what is left, when nobody watches any more.
func (k *keeper) finish(l *Limiter) {
	k.ended.Wait()
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	k.mu.Lock()
	k.next = time.Time{}
	l.gatherLocked()
	news := len(k.pending) > 0
	k.mu.Unlock()
	if news {
		_ = k.write(context.Background())
	}
}

// gatherLocked adds what has changed to what is pending.
func (l *Limiter) gatherLocked() {
	k := l.keeper
	floods := l.book.Changes()
	for _, r := range floods {
		if r.Until.IsZero() {
			k.pending[r.Key()] = store.Fact{Key: r.Key()}
		} else if r.Wait >= minKept || k.shared {
			k.pending[r.Key()] = fact(r.Key(), r, r.Until)
		}
	}
	for _, r := range l.guard.Changes() {
		if r.Tripped.IsZero() && len(r.At) == 0 {
			k.pending[r.Key()] = store.Fact{Key: r.Key()}
		} else {
			k.pending[r.Key()] = fact(r.Key(), r, l.clock.Now().Add(refusalKept))
		}
	}
	if !l.learning.news.Load() {
		return
	}
	if now := l.clock.Now(); l.learning.urgent.Swap(false) || len(floods) > 0 || !now.Before(k.next) {
		k.next = now.Add(rateEvery)
		for _, f := range l.learning.changes(now) {
			k.pending[f.Key] = f
		}
	}
}

// fact makes a fact of a value that encodes.
func fact(key string, value any, until time.Time) store.Fact {
	text, err := json.Marshal(value)
	if err != nil {
		return store.Fact{Key: key} // of a kind that there is not: nothing to remember
	}
	return store.Fact{Key: key, Value: text, Until: until}
}

// told takes in a fact that was kept, or that another process saved. One that does not
// read is ignored: it is of another version.
func (l *Limiter) told(f store.Fact) {
	switch {
	case strings.HasPrefix(f.Key, floodFact):
		var r flood.Record
		if f.Value == nil {
			for _, known := range l.book.Snapshot() {
				if known.Key() == f.Key {
					known.Until, known.Wait = time.Time{}, 0
					l.book.Restore(known)
				}
			}
		} else if json.Unmarshal(f.Value, &r) == nil {
			l.book.Restore(r)
		}
	case strings.HasPrefix(f.Key, refusalFact):
		var r flood.Refusal
		if f.Value == nil {
			for _, known := range l.guard.Snapshot() {
				if known.Key() == f.Key {
					known.At, known.Tripped = nil, time.Time{}
					l.guard.Restore(known)
				}
			}
		} else if json.Unmarshal(f.Value, &r) == nil {
			l.guard.Restore(r)
		}
	case strings.HasPrefix(f.Key, rateFact):
		l.toldRate(f)
	case strings.HasPrefix(f.Key, limitFact) && l.keeper.shared:
		var changed limit
		if json.Unmarshal(f.Value, &changed) == nil {
			l.adopt(strings.TrimPrefix(f.Key, limitFact), changed)
		}
	}
}

// key is the text under which a store keeps a learned rate.
func (what learned) key() string {
	if what.chat != 0 {
		return rateFact + "chat/" + strconv.FormatInt(int64(what.chat), 10)
	}
	return rateFact + what.category.String()
}

func learnedOf(key string) (what learned, err error) {
	name := strings.TrimPrefix(key, rateFact)
	if chat, ok := strings.CutPrefix(name, "chat/"); ok {
		id, err := strconv.ParseInt(chat, 10, 64)
		if err == nil && id == 0 {
			err = errors.New("no chat")
		}
		return learned{chat: classify.Peer(id)}, err
	}
	what.category, err = classify.ParseCategory(name)
	if what.category == classify.Global {
		err = errors.New("no category of calls") // by which it could climb back
	}
	return what, err
}

// keptRate is a learned rate as it is stored. A rate is only worth what it was learned
// below: with another ceiling it is cut to that.
type keptRate struct {
	State learn.State `json:"state"`
	Whole []string    `json:"whole,omitempty"` // methods that are limited as a whole
}

func (l *Limiter) toldRate(f store.Fact) {
	what, err := learnedOf(f.Key)
	t := &l.learning
	if err != nil || t.off {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept keptRate
	known, now := t.find(what), l.clock.Now()
	if f.Value != nil && json.Unmarshal(f.Value, &kept) != nil {
		return
	}
	if f.Value != nil && known != nil && !kept.State.Flooded.After(known.State().Flooded) {
		// This process has known that flood, and has grown since, or follows.
		if l.shares && !known.leads && kept.State.Flooded.Equal(known.State().Flooded) && known.Follow(kept.State, now) == nil {
			known.heard = now
			l.tellLocked(what, ratelimit.Change{})
		}
		return
	}
	defer func() {
		delete(t.dirty, what) // it is what the store has
		l.tellLocked(what, ratelimit.Change{})
	}()
	if f.Value == nil {
		t.forget(what)
		return
	}
	rate := l.rateLocked(what)
	if rate == nil {
		return
	}
	rate.leads, rate.heard = false, now
	if rate.Restore(kept.State, now) != nil && known == nil {
		t.forget(what)
	}
	if r := t.find(what); r == nil || !r.Learned() {
		t.forget(what)
		return
	}
	if what.chat == 0 {
		for _, method := range kept.Whole[:min(len(kept.Whole), maxWhole)] {
			t.whole[method] = what.category
		}
	}
}

// maxWhole bounds the methods that are believed of a store.
const maxWhole = 100

// changes returns the rates that changed since the last time, as facts.
func (t *learning) changes(now time.Time) []store.Fact {
	t.mu.Lock()
	defer t.mu.Unlock()
	var facts []store.Fact
	for what := range t.dirty {
		if r := t.find(what); r != nil {
			facts = append(facts, fact(what.key(), keptRate{r.State(), t.methods(what.category)}, now.Add(rateKept)))
		} else {
			facts = append(facts, store.Fact{Key: what.key()})
		}
	}
	clear(t.dirty)
	t.news.Store(false)
	return facts
}
