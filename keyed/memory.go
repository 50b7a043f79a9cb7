package keyed

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/store"
)

// ErrClosed is matched by the error of what was closed. It matches
// store.ErrUnavailable.
var ErrClosed = fmt.Errorf("%w: closed", store.ErrUnavailable)

// MemoryOptions says how a [Memory] is made.
type MemoryOptions struct {
	// Clock is the system's unless set.
	Clock clock.Clock
	// MaxKeys is the most keys that are kept, 2,097,152 unless set. A charge to one
	// more is an error that matches store.ErrUnavailable, since to forget another
	// would let a crowd make room for itself.
	MaxKeys int
}

// Memory is a store in the memory of the process, and ends with it. A key takes the
// length of its name and some 75 to 120 bytes, a sliding window 12 bytes more for each
// charge that counts. What has expired is forgotten as others are charged: there is no
// goroutine and no pause for it.
type Memory struct {
	clock   *Steady
	maxKeys int64
	keys    atomic.Int64
	turn    atomic.Uint32 // whose turn it is to be swept
	closed  atomic.Bool
	seed    maphash.Seed
	shards  [shards]shard
}

const (
	shards    = 64
	shardBits = 6
)

// shard has a lock of its own, and no part in another's cache line.
type shard struct {
	mu sync.Mutex
	table
	asked uint32
	_     [64 - 8 - 40 - 8]byte
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = 2 << 20
	}
	return &Memory{clock: NewSteady(o.Clock, time.Time{}), maxKeys: int64(o.MaxKeys), seed: maphash.MakeSeed()}
}

// at returns where a key is kept.
func (m *Memory) at(key string, k Kind) (*shard, uint32) {
	// A multiple that differs for each kind, and an odd one, keeps kinds apart.
	h := maphash.String(m.seed, key) * (uint64(k)<<1 | 1)
	return &m.shards[h>>(64-shardBits)], uint32(h)
}

// Decide implements [Store]. It does not block.
func (m *Memory) Decide(ctx context.Context, r Request) (Result, error) {
	if err := m.usable(ctx); err != nil {
		return Result{}, err
	}
	s, hash := m.at(r.Key, r.Window.Kind)
	s.mu.Lock()
	result, err := m.decide(s, hash, r)
	s.asked++
	sweep := s.asked%sweepEach == 0
	s.mu.Unlock()
	if sweep {
		m.sweep()
	}
	return result, err
}

func (m *Memory) decide(s *shard, hash uint32, r Request) (Result, error) {
	now, ahead := m.clock.Now() // under the lock, so that it is not old by when it counts
	var state State
	at := s.find(hash, r.Key, r.Window.Kind)
	switch {
	case at != nil:
		state = at.state()
	case r.Record:
		if err := m.makeRoom(s, now); err != nil {
			return Result{}, err
		}
		at = s.insert(hash, r.Key, firstSize(r.Window.Kind))
		state = at.state()
	}
	result, next, err := state.Decide(r, now)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if r.Record && !result.Limited {
		at.set(next)
	}
	result.ResetAt = result.ResetAt.Add(-ahead)
	return result, nil
}

// Every so many decisions of a shard, a shard is swept a little, each in turn: one
// that is not asked any more has to be swept by others.
const (
	sweepEach  = 16
	sweepSlots = 32
)

func (m *Memory) sweep() {
	s := &m.shards[m.turn.Add(1)%shards]
	if !s.mu.TryLock() {
		return // it is in use, and another's turn comes soon
	}
	now, _ := m.clock.Now()
	m.keys.Add(-int64(s.table.sweep(sweepSlots, uint32(now.Unix()))))
	s.mu.Unlock()
}

// makeRoom counts a key that will be inserted, if there is room for it.
func (m *Memory) makeRoom(s *shard, now time.Time) error {
	// More than one slot for each new key, or the table would grow for what has expired.
	m.keys.Add(-int64(s.table.sweep(4, uint32(now.Unix()))))
	if m.keys.Load() >= m.maxKeys {
		m.keys.Add(-int64(s.table.sweep(256, uint32(now.Unix()))))
	}
	if m.keys.Add(1) > m.maxKeys {
		m.keys.Add(-1)
		return fmt.Errorf("%w: memory has %d keys, the most that it may", store.ErrUnavailable, m.maxKeys)
	}
	return nil
}

// firstSize is the size of a state after its first charge.
func firstSize(k Kind) int {
	switch k {
	case Sliding:
		return slidingSize + hitSize
	case Bucket:
		return bucketSize
	default:
		return counterSize
	}
}

// Reset implements [Store]. It does not block.
func (m *Memory) Reset(ctx context.Context, key string) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	for k := range Kind(kinds) {
		s, hash := m.at(key, k)
		s.mu.Lock()
		if s.remove(hash, key, k) {
			m.keys.Add(-1)
		}
		s.mu.Unlock()
	}
	return nil
}

// Len is the number of keys that are kept, each kind of window counted by itself, and
// what has expired and was not yet swept included.
func (m *Memory) Len() int { return int(m.keys.Load()) }

// Close implements [Store]: it forgets everything.
func (m *Memory) Close() error {
	m.closed.Store(true)
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		m.keys.Add(-int64(s.n))
		s.table = table{}
		s.mu.Unlock()
	}
	return nil
}

func (m *Memory) usable(ctx context.Context) error {
	if m.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}
