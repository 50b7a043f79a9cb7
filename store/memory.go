package store

import (
	"context"
	"time"
)

// Memory keeps facts about one account beyond the life of a process: floods that
// stand, rates that were learned, limits that were changed. It is safe for concurrent
// use. Every method ends when its context does, and its errors match [ErrUnavailable]
// unless they are about the arguments.
type Memory interface {
	// Load returns the facts that have not expired, in no order.
	Load(ctx context.Context) ([]Fact, error)
	// Save keeps the facts, all or none, each in place of an older one with its key.
	// What it has returned from without an error outlives the process.
	Save(ctx context.Context, facts ...Fact) error
	// Watch calls f, from one goroutine, with what other processes save, until ctx is
	// done or the store is lost. Whenever something may have been missed, at the start
	// and when a connection is back, it calls f with all facts first. It returns the
	// context's error or one that matches ErrUnavailable. Where there can be no other
	// process, it waits for ctx to be done.
	Watch(ctx context.Context, f func(Fact)) error
}

// Fact is one thing that is remembered.
type Fact struct {
	// Key tells facts apart: 1 to 512 bytes.
	Key string
	// Value is up to 64 KiB. A nil value forgets the fact.
	Value []byte
	// Until is when the fact expires, on the wall clock. It has to be given, unless
	// the value is nil.
	Until time.Time
}
