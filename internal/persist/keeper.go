package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

const (
	// patience bounds one question to the store.
	patience = 2 * time.Second
	// checkPatience bounds the first one, for which a connection has to be set up.
	checkPatience = 5 * time.Second
	// growthEvery is how often what is not urgent is written. What is lost of it comes again.
	growthEvery = 10 * time.Second
	// clocks is by how much the clocks of processes may disagree about when a fact expires.
	clocks = 24 * time.Hour
)

// Options of a [Keeper].
type Options struct {
	Facts  store.Facts
	Health *store.Health // of Facts; nothing else uses it
	Clock  clock.Clock
	// Doubt, if not nil, is called with a fact that is to last longer than any of its kind.
	// It is ignored, so that a damaged one does not stand for years.
	Doubt func(store.Fact)
}

// Keeper keeps what its sources know in a store. It is safe for concurrent use. Its methods
// may be called on a nil Keeper, which keeps nothing.
type Keeper struct {
	facts   store.Facts
	health  *store.Health
	clock   clock.Clock
	doubt   func(store.Fact)
	sources []kept
	journal *Journal

	life  context.Context // done after Close
	end   context.CancelFunc
	tasks sync.WaitGroup
	close sync.Once
	wake  chan struct{} // there is something for the writer to look at

	mu      sync.Mutex            // never held while the store is asked
	pending map[string]store.Fact // not saved yet
	next    time.Time             // when what is not urgent is written
	written chan struct{}         // closed after the next write, nil if nobody waits for it
}

type kept struct {
	Source
	longest time.Duration
}

// New returns a keeper without sources, or nil if there is no store.
func New(opts Options) *Keeper {
	if opts.Facts == nil {
		return nil
	}
	k := &Keeper{
		facts: opts.Facts, health: opts.Health, clock: opts.Clock, doubt: opts.Doubt,
		journal: newJournal(opts.Clock), pending: map[string]store.Fact{}, wake: make(chan struct{}, 1),
	}
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// Journal returns what sources mark their changes in, nil if nothing is kept.
func (k *Keeper) Journal() *Journal {
	if k == nil {
		return nil
	}
	return k.journal
}

// Add adds a source whose facts last as long as longest at most. It has to be called before
// [Keeper.Start].
func (k *Keeper) Add(s Source, longest time.Duration) {
	if k != nil {
		k.sources = append(k.sources, kept{s, longest})
	}
}

// Start asks the store whether it can be used, brings back what it has, and begins to write
// and to watch. It blocks for seven seconds at most. It returns an error, and starts nothing,
// if the store is misconfigured, and under store.FailClosed if it is unavailable: something
// may stand that nobody knows of.
func (k *Keeper) Start(policy store.Policy) error {
	if k == nil {
		return nil
	}
	fatal := func(err error) bool {
		return err != nil && (policy == store.FailClosed || errors.Is(err, store.ErrMisconfigured))
	}
	if c, ok := k.facts.(store.Checker); ok {
		ctx, cancel := context.WithTimeout(k.life, checkPatience)
		err := c.Check(ctx)
		cancel()
		if fatal(err) {
			k.end()
			return fmt.Errorf("store: %w", err)
		}
	}
	if err := k.load(k.life, ""); fatal(err) {
		k.end()
		return fmt.Errorf("store: %w", err)
	}
	k.tasks.Go(k.watch)
	k.tasks.Go(k.write)
	return nil
}

// Recall brings back once more what the store has under the prefix. It blocks for two seconds
// at most, or until ctx is done, and not at all while the store is lost.
func (k *Keeper) Recall(ctx context.Context, prefix string) {
	if k == nil || k.lost() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.life, cancel)()
	_ = k.load(ctx, prefix) // the health knows of it
}

func (k *Keeper) lost() bool {
	_, err := k.health.Lost()
	return err != nil
}

// load takes in what the store has under the prefix.
func (k *Keeper) load(ctx context.Context, prefix string) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	facts, err := k.facts.Load(bounded)
	if ctx.Err() == nil { // else it was not the store that failed
		k.heard(err)
	}
	for _, f := range facts {
		if strings.HasPrefix(f.Key, prefix) {
			k.receive(f)
		}
	}
	return err
}

// heard notes what is known of the store, and lets the writer try one that is lost again.
func (k *Keeper) heard(err error) {
	k.health.Heard(err)
	if err != nil {
		k.poke()
	}
}

// watch takes in what other processes save.
func (k *Keeper) watch() {
	const first = 100 * time.Millisecond
	for pause := first; ; pause = min(2*pause, store.DefaultLongestPause) {
		began := k.clock.Now()
		err := k.facts.Watch(k.life, k.receive)
		if k.life.Err() != nil {
			return
		}
		k.heard(err)
		if k.clock.Now().Sub(began) > store.DefaultLongestPause {
			pause = first
		}
		timer := k.clock.Timer(pause)
		select {
		case <-timer.C():
		case <-k.life.Done():
			clock.StopTimer(timer)
			return
		}
	}
}

// Close saves what is left, and waits for the keeper's goroutines to end. A store that hangs
// is given up on after two seconds, provided that it ends when its context does.
func (k *Keeper) Close() {
	if k == nil {
		return
	}
	k.close.Do(func() {
		k.end()
		k.tasks.Wait()
		k.mu.Lock()
		k.gatherLocked()
		some := len(k.pending) > 0
		k.mu.Unlock()
		if some {
			k.health.Heard(k.save(context.Background()))
		}
	})
}
