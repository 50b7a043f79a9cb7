package boltstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/internal/wallclock"
	"github.com/weirtg/weir/quota"
)

// put writes bytes under a key of a closed file; bucket is "" for the file's own numbers.
func put(t testing.TB, path, bucket, key string, value []byte) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("weir"))
		if bucket != "" {
			b = b.Bucket([]byte(bucket))
		}
		return b.Put([]byte(key), value)
	}))
	require.NoError(t, db.Close())
}

func number(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// soon wants f to end.
func soon(t testing.TB, doing string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", doing)
	}
}

// A clock in the file that is damaged neither hangs the store nor switches limits off, and is
// repaired and said once.
func TestClockInTheFileThatIsBeyondReasonIsRepaired(t *testing.T) {
	for _, stored := range []int64{
		math.MaxInt64, 1 << 62, 1 << 60, 1 << 53, math.MinInt64, -1,
		time.Now().Add(wallclock.MaxAhead+time.Hour).UnixMicro() + time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro(),
	} {
		f := newFile(t)
		require.NoError(t, f.open.Close())
		put(t, f.path, "", "clock", number(stored))
		core, logged := observer.New(zap.WarnLevel)
		for range 2 {
			soon(t, "the store", func() {
				s, err := boltstore.Open(f.path, boltstore.Options{Clock: f.wall, Logger: zap.New(core)}.Unsafe())
				require.NoError(t, err)
				w := quota.Window{Limit: 1, Period: time.Hour}
				charge(t, s, "k", w)
				got := charge(t, s, "k", w)
				require.True(t, got.Limited, stored)
				require.LessOrEqual(t, got.RetryAfter, time.Hour)
				require.WithinDuration(t, f.Now().Add(time.Hour), got.ResetAt, time.Hour)
				require.NoError(t, s.Reset(context.Background(), "k"))
				require.NoError(t, s.Close())
			})
		}
		want := 1
		if stored < 0 {
			want = 0 // which is the past
		}
		require.Equal(t, want, logged.Len(), "%d is said once", stored)
	}
}

// Whatever stands in the file where a number belongs: an answer or an error, and soon.
func FuzzNumbersInTheFile(f *testing.F) {
	f.Add(number(math.MaxInt64), []byte{}, []byte{})
	f.Add(number(1<<60), append([]byte{0}, bytes.Repeat([]byte{0x7f}, 40)...), bytes.Repeat([]byte{0xff}, 9))
	f.Add(number(0), append([]byte{3}, number(1<<60)...), append(number(math.MaxInt64), "{}"...))
	f.Add([]byte{1}, append(append([]byte{1}, number(1<<40)...), bytes.Repeat([]byte{0}, 12)...), number(math.MinInt64))
	dir := f.TempDir()
	template := filepath.Join(dir, "n.db")
	s, err := boltstore.Open(template, boltstore.Options{Logger: zap.NewNop()}.Unsafe())
	require.NoError(f, err)
	require.NoError(f, s.Close())
	f.Fuzz(func(t *testing.T, clock, state, fact []byte) {
		put(t, template, "", "clock", clock)
		for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
			put(t, template, "keyed", string(byte(kind))+"k", state)
		}
		put(t, template, "facts", "fact", fact)
		soon(t, "the store", func() {
			s, err := boltstore.Open(template, boltstore.Options{Logger: zap.NewNop()}.Unsafe())
			if err != nil {
				t.Errorf("the file cannot be opened: %v", err)
				return
			}
			for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
				w := quota.Window{Limit: 2, Period: time.Hour, Kind: kind}
				got, err := s.Decide(context.Background(), quota.Request{Key: "k", Window: w, Cost: 1, Record: true})
				if err == nil && (got.RetryAfter < 0 || got.RetryAfter > 2*quota.MaxPeriod || got.Remaining < 0 || got.Remaining > 2) {
					t.Errorf("%v: %+v", kind, got)
				}
			}
			if _, err := s.Load(context.Background()); err != nil {
				t.Errorf("load: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	})
}
