package boltstore

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/weirtg/weir/quota"
)

func stateKey(key string, kind quota.Kind) []byte {
	return append([]byte{byte(kind)}, key...)
}

// Decide implements [quota.Store]. A charge blocks for two fsyncs, and for those of
// the transaction that is being written if there is one; a refusal and a peek for none.
func (s *Store) Decide(ctx context.Context, r quota.Request) (quota.Result, error) {
	key := stateKey(r.Key, r.Window.Kind)
	look := r
	look.Record = false
	seen := new(quota.Result)
	err := s.read(ctx, "read", func(b *bolt.Bucket) (err error) {
		*seen, _, err = s.decide(b.Bucket(states).Get(key), look)
		return err
	})
	if err != nil {
		return quota.Result{}, err
	}
	if !r.Record || seen.Limited {
		return *seen, nil
	}
	// A result of its own, for the write may outlast the call.
	charged := new(quota.Result)
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
		return quota.Result{}, err
	}
	return *charged, nil
}

// decide leaves v, which lies in the file, as it is.
func (s *Store) decide(v []byte, r quota.Request) (quota.Result, quota.State, error) {
	now, ahead := s.clock.Now()
	if r.Record {
		v = bytes.Clone(v)
	}
	result, next, err := quota.State(v).Decide(r, now)
	result.ResetAt = result.ResetAt.Add(-ahead)
	return result, next, err
}

// Reset implements [quota.Store]. It blocks as a charge does.
func (s *Store) Reset(ctx context.Context, key string) error {
	return s.do(ctx, "reset", func(b *bolt.Bucket) (changed bool, err error) {
		b = b.Bucket(states)
		for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
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
