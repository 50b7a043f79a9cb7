package quota

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/internal/wallclock"
	"github.com/weirtg/weir/store"
)

// memory is a [Store] in the memory of the process. Its methods do not block.
type memory struct {
	clock   *wallclock.Clock
	maxKeys int

	mu     sync.Mutex
	keys   map[memoryKey]*entry
	all    []*entry // the values of keys, in no order, for the sweep to walk
	next   int      // where in all the sweep continues
	closed bool
}

// memoryKey names a state: each kind of window has its own count.
type memoryKey struct {
	key  string
	kind Kind
}

type entry struct {
	memoryKey
	at    int // the entry's place in all
	state State
}

func newMemory(c clock.Clock, maxKeys int) *memory {
	return &memory{
		clock:   wallclock.New(c, time.Time{}),
		maxKeys: maxKeys,
		keys:    make(map[memoryKey]*entry),
	}
}

// Decide implements [Store].
func (m *memory) Decide(ctx context.Context, r Request) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return Result{}, err
	}
	// The clock is read under the lock, so that decisions are made in the order of
	// their times.
	now, ahead := m.clock.Now()
	key := memoryKey{r.Key, r.Window.Kind}
	e := m.keys[key]
	var state State
	if e != nil {
		state = e.state
	}
	result, next, err := state.Decide(r, now)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	result.ResetAt = result.ResetAt.Add(-ahead)
	if !r.Record || result.Limited {
		return result, nil
	}
	if e == nil {
		if e, err = m.insert(key, now); err != nil {
			return Result{}, err
		}
	}
	e.state = next
	m.sweep(sweepEach, now)
	return result, nil
}

// A charge looks at sweepEach entries and deletes those that have expired. It looks at
// more than one, so that the sweep is faster than keys can come. A full memory looks at
// sweepFull, which bounds how long the lock is held.
const (
	sweepEach = 2
	sweepFull = 256
)

// insert adds an entry for a key that has none.
func (m *memory) insert(key memoryKey, now time.Time) (*entry, error) {
	if len(m.all) >= m.maxKeys {
		m.sweep(sweepFull, now)
	}
	if len(m.all) >= m.maxKeys {
		return nil, fmt.Errorf("%w: memory holds %d keys, the most it may (Options.MaxKeys)", store.ErrUnavailable, m.maxKeys)
	}
	// The key may be part of a larger text, such as a message, which must not be kept
	// in memory for its sake.
	key.key = strings.Clone(key.key)
	e := &entry{memoryKey: key, at: len(m.all)}
	m.all = append(m.all, e)
	m.keys[key] = e
	return e, nil
}

// sweep looks at up to n entries and deletes those that have expired.
func (m *memory) sweep(n int, now time.Time) {
	for ; n > 0 && len(m.all) > 0; n-- {
		if m.next >= len(m.all) {
			m.next = 0
		}
		if e := m.all[m.next]; e.state.Expired(now) {
			m.delete(e) // the last entry takes its place, and is looked at next
		} else {
			m.next++
		}
	}
}

func (m *memory) delete(e *entry) {
	last := len(m.all) - 1
	m.all[e.at] = m.all[last]
	m.all[e.at].at = e.at
	m.all[last] = nil
	m.all = m.all[:last]
	delete(m.keys, e.memoryKey)
}

// Reset implements [Store].
func (m *memory) Reset(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	for kind := range Kind(kinds) {
		if e := m.keys[memoryKey{key, kind}]; e != nil {
			m.delete(e)
		}
	}
	return nil
}

// len returns the number of entries, expired ones that were not swept yet included.
func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}

// Close implements [Store]. It forgets everything.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.keys, m.all = true, nil, nil
	return nil
}

func (m *memory) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}
