package boltstore

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/weirtg/weir/keyed"
)

func stateKey(key string, kind keyed.Kind) []byte {
	return append([]byte{byte(kind)}, key...)
}

// Decide implements [keyed.Store]. A charge blocks for two fsyncs, and for those of
// the transaction that is being written if there is one; a refusal and a peek for none.
func (s *Store) Decide(ctx context.Context, r keyed.Request) (keyed.Result, error) {
	key := stateKey(r.Key, r.Window.Kind)
	look := r
	look.Record = false
	seen := new(keyed.Result)
	err := s.read(ctx, "read", func(b *bolt.Bucket) (err error) {
		*seen, _, err = s.decide(b.Bucket(states).Get(key), look)
		return err
	})
	if err != nil {
		return keyed.Result{}, err
	}
	if !r.Record || seen.Limited {
		return *seen, nil
	}
	// A result of its own, for the write may outlast the call.
	charged := new(keyed.Result)
	err = s.do(ctx, "charge", func(b *bolt.Bucket) (bool, error) {
		b = b.Bucket(states)
		got, next, err := s.decide(b.Get(key), r)
		*charged = got
		if err != nil || got.Limited {
			return false, err
		}
		return true, b.Put(key, next)
	})
	if err != nil {
		return keyed.Result{}, err
	}
	return *charged, nil
}

// decide leaves v, which lies in the file, as it is.
func (s *Store) decide(v []byte, r keyed.Request) (keyed.Result, keyed.State, error) {
	now, ahead := s.clock.Now()
	if r.Record {
		v = bytes.Clone(v)
	}
	result, next, err := keyed.State(v).Decide(r, now)
	result.ResetAt = result.ResetAt.Add(-ahead)
	return result, next, err
}

// Reset implements [keyed.Store]. It blocks as a charge does.
func (s *Store) Reset(ctx context.Context, key string) error {
	return s.do(ctx, "reset", func(b *bolt.Bucket) (changed bool, err error) {
		b = b.Bucket(states)
		for kind := keyed.Sliding; kind <= keyed.Bucket; kind++ {
			k := stateKey(key, kind)
			if b.Get(k) == nil {
				continue
			}
			changed = true
			if err := b.Delete(k); err != nil {
				return changed, err
			}
		}
		return changed, nil
	})
}
