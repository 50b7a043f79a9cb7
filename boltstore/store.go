package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirtg/weir/internal/wallclock"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

// Options says how a file is opened.
type Options struct {
	// Clock is the system's unless set.
	Clock clock.Clock
	// LockTimeout is how long Open waits for another process to close the file, as one
	// that is being replaced does. 1 s unless set.
	LockTimeout time.Duration

	// Logger gets a line when a number in the file could not be believed and was repaired. nil
	// writes it to standard error; zap.NewNop() writes nothing.
	Logger *zap.Logger

	// For tests: openFile is in place of os.OpenFile, and unsafe leaves out fsync.
	openFile func(string, int, os.FileMode) (*os.File, error)
	unsafe   bool
}

// Store is an open file. It is a [quota.Store] and a [store.Facts], and safe for
// concurrent use.
//
// All its methods end when their context does; a write that has begun goes on behind
// their back. Their errors match [store.ErrUnavailable], and by their cause
// [quota.ErrClosed], [ErrCorrupt] or the system's own (fs.ErrPermission,
// syscall.ENOSPC), unless they are the context's or about the arguments.
type Store struct {
	path  string
	wall  clock.Clock
	clock *wallclock.Clock
	db    *bolt.DB
	file  *os.File // db's

	writes  chan *write
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when nothing is written any more
	once    sync.Once
	closed  error // of the file, once ended is closed
	result  error // what Close returns

	// broken is why the file cannot be used any more: bbolt has panicked, not under our
	// code but in its own, and who knows what it has left locked. lost is closed then, for
	// those who wait for such a lock.
	broken atomic.Pointer[error]
	lost   chan struct{}

	// The writer's: where its sweeps go on.
	sweptStates, sweptFacts []byte
}

var (
	_ quota.Store = (*Store)(nil)
	_ store.Facts = (*Store)(nil)
)

// Everything is in one bucket, so that others can be in the file.
var (
	root   = []byte("weir")
	states = []byte("keyed") // a kind and a key: a quota.State; package quota was named keyed
	known  = []byte("facts") // a key: until in microseconds, 8 bytes, and the value
	format = []byte("format")
	latest = []byte("clock") // the latest time told, in microseconds, 8 bytes
)

// version is the format's. It changes when an older Store could not read the file.
const version = 1

var le = binary.LittleEndian

// Open opens the file at path, and makes it (mode 0600) if there is none. It blocks
// for at most Options.LockTimeout while another has it open. The error names the file
// and says what can be done, and matches [ErrLocked], [ErrCorrupt] or the system's own.
func Open(path string, o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	if o.Logger == nil {
		encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
		o.Logger = zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.WarnLevel)).Named("weir")
	}
	if o.openFile == nil {
		o.openFile = os.OpenFile
	}
	s := &Store{
		path:    path,
		wall:    o.Clock,
		writes:  make(chan *write),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		lost:    make(chan struct{}),
	}
	if err := s.open(o); err != nil {
		if s.file != nil {
			_ = release(s.file) // in case that a panic has kept bbolt from doing so
		}
		return nil, s.explain("open", err)
	}
	go s.write()
	return s, nil
}

func (s *Store) open(o Options) error {
	return contain(func() (err error) {
		s.db, err = bolt.Open(s.path, 0o600, &bolt.Options{
			Timeout:      o.LockTimeout,
			FreelistType: bolt.FreelistMapType,
			NoStatistics: true,
			NoSync:       o.unsafe,
			OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := o.openFile(path, flag, mode)
				s.file = f
				return f, err
			},
		})
		if err != nil {
			return err
		}
		var last time.Time
		err = s.db.Update(func(tx *bolt.Tx) error {
			info, err := s.file.Stat()
			if err != nil {
				return err
			}
			if size := tx.Size(); info.Size() < size {
				return fmt.Errorf("%w: it has %d of %d bytes", ErrCorrupt, info.Size(), size)
			}
			last, err = prepare(tx)
			return err
		})
		if err != nil {
			return errors.Join(err, s.db.Close())
		}
		if now := o.Clock.Now(); last.After(now.Add(wallclock.MaxAhead)) {
			// A state that is ahead as well is dropped when it is used.
			o.Logger.Warn("The clock in the file is not believed: windows go on from the system's",
				zap.String("file", s.path), zap.Int64("stored_us", last.UnixMicro()), zap.Time("system", now),
				zap.Duration("most_ahead", wallclock.MaxAhead))
			if err := s.db.Update(func(tx *bolt.Tx) error {
				return tx.Bucket(root).Put(latest, le.AppendUint64(nil, uint64(now.UnixMicro())))
			}); err != nil {
				return errors.Join(err, s.db.Close())
			}
		}
		s.clock = wallclock.New(o.Clock, last)
		return nil
	})
}

// prepare makes the buckets if there are none, and returns the latest time told.
func prepare(tx *bolt.Tx) (last time.Time, err error) {
	b := tx.Bucket(root)
	if b == nil {
		if b, err = tx.CreateBucket(root); err != nil {
			return last, err
		}
		if err := b.Put(format, []byte{version}); err != nil {
			return last, err
		}
	}
	if v := b.Get(format); len(v) != 1 || v[0] != version {
		return last, fmt.Errorf("format is %v, and this program reads %d: it was written by a later version", v, version)
	}
	for _, name := range [][]byte{states, known} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return last, err
		}
	}
	if v := b.Get(latest); len(v) == 8 {
		last = time.UnixMicro(int64(le.Uint64(v)))
	}
	return last, nil
}

// Close waits for the write that is going on, if any, and closes the file. Calls that
// come later, and those that wait, fail with an error that matches [quota.ErrClosed].
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		select {
		case <-s.ended:
		case <-s.lost:
			select {
			case <-s.ended:
			case <-time.After(time.Second): // it waits for what a panic has left locked
				s.result = release(s.file)
				return
			}
		}
		s.result = s.closed
	})
	return s.result
}

// read runs f in a transaction that sees what is written, and waits for no one. If it
// returns an error, f may run on: what it writes to must not be read then.
func (s *Store) read(ctx context.Context, doing string, f func(b *bolt.Bucket) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return quota.ErrClosed
	default:
	}
	done := make(chan error, 1)
	go func() { done <- s.inside(s.db.View, f) }()
	select {
	case err := <-done:
		return s.explain(doing, err)
	case <-ctx.Done():
		return ctx.Err()
	case <-s.lost:
		return s.explain(doing, *s.broken.Load())
	}
}

// inside runs f in a transaction, and turns panics into errors. If it was f that has
// met a damaged page, the transaction is rolled back, and others go on.
func (s *Store) inside(transaction func(func(*bolt.Tx) error) error, f func(b *bolt.Bucket) error) error {
	if broken := s.broken.Load(); broken != nil {
		return *broken
	}
	var inner error
	err := contain(func() error {
		return transaction(func(tx *bolt.Tx) error {
			inner = contain(func() error { return f(tx.Bucket(root)) })
			return inner
		})
	})
	if err != inner && errors.As(err, new(*panicked)) {
		if s.broken.CompareAndSwap(nil, &err) {
			close(s.lost)
		}
	}
	return err
}
