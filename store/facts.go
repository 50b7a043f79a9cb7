package store

import (
	"context"
	"fmt"
	"time"
)

// Facts keeps facts about one account beyond the life of a process: floods that
// stand, rates that were learned, limits that were changed. It is safe for concurrent
// use. Every method ends when its context does, and its errors match [ErrUnavailable]
// unless they are about the arguments.
type Facts interface {
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
	// Began is when what the fact is about happened. A store ignores it: the limiter keeps it
	// in the value.
	Began time.Time
}

// What a fact may be.
const (
	MaxFactKey   = 512
	MaxFactValue = 64 << 10
)

// Validate returns an [*ArgumentError] for a fact that no store takes. One that has
// expired already is taken: it forgets an older one.
func (f Fact) Validate() error {
	switch {
	case f.Key == "":
		return &ArgumentError{Field: "fact.key", Value: "empty", Want: fmt.Sprintf("1 to %d bytes", MaxFactKey)}
	case len(f.Key) > MaxFactKey:
		return &ArgumentError{
			Field: "fact.key", Value: fmt.Sprintf("%d bytes", len(f.Key)),
			Want: fmt.Sprintf("1 to %d bytes", MaxFactKey),
		}
	case len(f.Value) > MaxFactValue:
		return &ArgumentError{
			Field: "fact.value", Value: fmt.Sprintf("%d bytes", len(f.Value)),
			Want: fmt.Sprintf("at most %d bytes", MaxFactValue),
		}
	case f.Value != nil && f.Until.IsZero():
		return &ArgumentError{Field: "fact.until", Value: "missing", Want: "the time when the fact expires"}
	}
	return nil
}
