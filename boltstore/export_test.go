package boltstore

import (
	"os"

	bolt "go.etcd.io/bbolt"
)

// Kept counts the states in the file.
func (s *Store) Kept() (n int) {
	_ = s.db.View(func(tx *bolt.Tx) error {
		n = tx.Bucket(root).Bucket(states).Stats().KeyN
		return nil
	})
	return n
}

// HoldWrites blocks what is written until release is called, as a hung disk does.
func (s *Store) HoldWrites() (release func() error, err error) {
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, err
	}
	return tx.Rollback, nil
}

// Unsafe leaves out fsync, for tests of what is decided.
func (o Options) Unsafe() Options {
	o.unsafe = true
	return o
}

// FailOpen makes Open fail as the system would.
func (o Options) FailOpen(err error) Options {
	o.openFile = func(path string, _ int, _ os.FileMode) (*os.File, error) {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return o
}

// Break puts something into the file that is no state.
func (s *Store) Break(key string) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(root).Bucket(states).Put(stateKey(key, 0), []byte("rubbish"))
	})
}
