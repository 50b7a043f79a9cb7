package boltstore

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

func encodeFact(f store.Fact) []byte {
	return append(le.AppendUint64(nil, uint64(f.Until.UnixMicro())), f.Value...)
}

// decodeFact returns the value in place. ok is false for what encodeFact has not made.
func decodeFact(v []byte) (value []byte, until time.Time, ok bool) {
	if len(v) < 8 {
		return nil, time.Time{}, false
	}
	return v[8:], time.UnixMicro(int64(le.Uint64(v))), true
}

// Load implements [store.Facts]. It waits for no one.
func (s *Store) Load(ctx context.Context) ([]store.Fact, error) {
	var facts []store.Fact
	err := s.read(ctx, "load", func(b *bolt.Bucket) error {
		now := s.wall.Now()
		return b.Bucket(known).ForEach(func(k, v []byte) error {
			// What is no fact must not hide the others. A sweep deletes it.
			if value, until, ok := decodeFact(v); ok && until.After(now) {
				facts = append(facts, store.Fact{Key: string(k), Value: append([]byte{}, value...), Until: until})
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// Save implements [store.Facts]. It blocks as a charge does. Of Until, whole
// microseconds are kept.
func (s *Store) Save(ctx context.Context, facts ...store.Fact) error {
	// The write may outlast the call, and the caller may then change what was passed.
	encoded := make([][]byte, len(facts))
	keys := make([][]byte, len(facts))
	for i, f := range facts {
		if err := f.Validate(); err != nil {
			return err
		}
		keys[i] = []byte(f.Key)
		if f.Value != nil {
			encoded[i] = encodeFact(f)
		}
	}
	if len(facts) == 0 {
		return ctx.Err()
	}
	return s.do(ctx, "save", func(b *bolt.Bucket) (bool, error) {
		b = b.Bucket(known)
		for i, v := range encoded {
			var err error
			if v != nil {
				err = b.Put(keys[i], v)
			} else {
				err = b.Delete(keys[i])
			}
			if err != nil {
				return true, err
			}
		}
		return true, nil
	})
}

// Watch implements [store.Facts]. No other process can save anything, so it waits for
// ctx to be done or the store to be closed.
func (s *Store) Watch(ctx context.Context, _ func(store.Fact)) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return quota.ErrClosed
	}
}
