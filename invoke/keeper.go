package invoke

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirtg/weir/store"
)

// keeper keeps what the limiter has to remember beyond the process.
type keeper struct {
	memory store.Facts
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

func newKeeper(memory store.Facts, report func(error)) *keeper {
	return &keeper{
		memory: memory, report: report,
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

// mostAtOnce is how many facts are saved at once. What has gathered in a long outage could take
// longer than a store may, however often it is tried.
const mostAtOnce = 500

// write writes what is pending, and asks the store whether it is there if nothing is. The
// caller has the turn.
func (k *keeper) write(ctx context.Context) {
	k.mu.Lock()
	batch := k.pending
	k.pending = map[string]store.Fact{}
	k.mu.Unlock()

	bounded, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	maps.DeleteFunc(batch, func(_ string, f store.Fact) bool {
		return f.Validate() != nil // no store takes it, nor any other that is saved with it
	})
	var err error
	if len(batch) == 0 {
		_, err = k.memory.Load(bounded)
	}
	for facts := range slices.Chunk(slices.Collect(maps.Values(batch)), mostAtOnce) {
		if err = k.memory.Save(bounded, facts...); err != nil {
			break
		}
		for _, f := range facts {
			delete(batch, f.Key)
		}
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
}

// dropOver forgets what is pending and has expired meanwhile. What the store has instead was to
// expire sooner.
func (k *keeper) dropOver(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.pending, func(_ string, f store.Fact) bool { return f.Value != nil && !f.Until.After(now) })
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
	lost := err != nil
	if lost == k.lost {
		return
	}
	k.lost = lost
	k.report(err)
	if lost {
		select {
		case k.loss <- struct{}{}:
		default:
		}
	}
}
