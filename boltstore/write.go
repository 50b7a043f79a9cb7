package boltstore

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/weirtg/weir/quota"
)

// write is one change that a caller waits for.
type write struct {
	ctx   context.Context
	doing string
	// apply does it, and reports whether there is anything to be kept.
	apply func(b *bolt.Bucket) (changed bool, err error)
	err   error
	done  chan struct{}
}

// do has a change written, together with those of others.
func (s *Store) do(ctx context.Context, doing string, apply func(*bolt.Bucket) (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{ctx: ctx, doing: doing, apply: apply, done: make(chan struct{})}
	select {
	case <-s.closing:
		return quota.ErrClosed
	case <-s.lost:
		return s.explain(doing, *s.broken.Load())
	case <-ctx.Done():
		return ctx.Err()
	case s.writes <- w:
	}
	select {
	case <-w.done:
		return w.err
	case <-s.lost:
		return s.explain(doing, *s.broken.Load())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// most is how many changes share a transaction at most.
const most = 1024

// write is the goroutine that writes, until the store is closed. While it waits for
// the disk, others queue up, and share the next transaction.
func (s *Store) write() {
	defer close(s.ended)
	batch := make([]*write, 0, most)
	for {
		select {
		case <-s.closing:
			s.closed = s.shut()
			return
		case w := <-s.writes:
			batch = s.gather(append(batch[:0], w))
		}
		s.commit(batch)
	}
}

// gather takes those that wait. It gives way twice before it goes without more: those
// who have been waiting for the last transaction are just being woken, and to write
// for the quickest of them alone would keep the others waiting for a whole one more.
func (s *Store) gather(batch []*write) []*write {
	for idle := 0; len(batch) < most && idle < 2; {
		select {
		case w := <-s.writes:
			batch = append(batch, w)
			idle = 0
		default:
			runtime.Gosched()
			idle++
		}
	}
	return batch
}

// errNothing ends a transaction that need not be written.
var errNothing = errors.New("nothing has changed")

func (s *Store) commit(batch []*write) {
	err := s.inside(s.db.Update, func(b *bolt.Bucket) error { return s.apply(b, batch) })
	for _, w := range batch {
		if w.err == nil && err != nil && err != errNothing {
			w.err = s.explain(w.doing, err)
		}
		close(w.done)
	}
}

func (s *Store) apply(b *bolt.Bucket, batch []*write) error {
	any := false
	for _, w := range batch {
		if w.err = w.ctx.Err(); w.err != nil {
			continue
		}
		changed, err := w.apply(b)
		if err != nil && changed {
			return err // what it has done of its change must go, and all with it
		}
		if err != nil {
			w.err = s.explain(w.doing, err)
		}
		any = any || changed
	}
	if !any {
		return errNothing
	}
	now, _ := s.clock.Now()
	if err := s.sweep(b, now, 2*len(batch)+2); err != nil {
		return err
	}
	return b.Put(latest, le.AppendUint64(nil, uint64(now.UnixMicro())))
}

// sweep looks at some states and facts further on, and deletes those that have expired.
func (s *Store) sweep(b *bolt.Bucket, now time.Time, some int) error {
	var err error
	s.sweptStates, err = sweep(b.Bucket(states), s.sweptStates, some, func(v []byte) bool {
		return quota.State(v).Expired(now)
	})
	if err != nil {
		return err
	}
	wall := s.wall.Now()
	s.sweptFacts, err = sweep(b.Bucket(known), s.sweptFacts, some, func(v []byte) bool {
		_, until, ok := decodeFact(v)
		return !ok || !until.After(wall)
	})
	return err
}

// sweep deletes what is over among some entries from a key on. It returns where to go
// on, nil for the start.
func sweep(b *bolt.Bucket, from []byte, some int, over func([]byte) bool) (next []byte, err error) {
	var old [][]byte
	c := b.Cursor()
	k, v := c.Seek(from)
	for ; k != nil && some > 0; k, v = c.Next() {
		if over(v) {
			old = append(old, bytes.Clone(k))
		}
		some--
	}
	next = bytes.Clone(k)
	for _, k := range old {
		if err := b.Delete(k); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// shut closes the file.
func (s *Store) shut() error {
	if s.broken.Load() != nil {
		return release(s.file) // bbolt's own locks may be held for good
	}
	return s.explain("close", contain(s.db.Close))
}
