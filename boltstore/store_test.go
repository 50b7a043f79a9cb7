package boltstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/storetest"
)

// wall is a wall clock that can be set.
type wall struct {
	*neo.Time
	off time.Duration
}

func newWall() *wall {
	return &wall{Time: neo.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC))}
}

func (w *wall) Now() time.Time                      { return w.Time.Now().Add(w.off) }
func (w *wall) Timer(d time.Duration) clock.Timer   { return w.Time.Timer(d) }
func (w *wall) Ticker(d time.Duration) clock.Ticker { return w.Time.Ticker(d) }

// file is a file in a test, which can be opened again and again.
type file struct {
	*wall
	path string
	open *boltstore.Store
}

func newFile(t *testing.T) *file {
	f := &file{wall: newWall(), path: filepath.Join(t.TempDir(), "weir.db")}
	f.reopen(t)
	t.Cleanup(func() { require.NoError(t, f.open.Close()) })
	return f
}

func (f *file) reopen(t *testing.T) *boltstore.Store {
	if f.open != nil {
		require.NoError(t, f.open.Close())
	}
	s, err := boltstore.Open(f.path, boltstore.Options{Clock: f.wall}.Unsafe())
	require.NoError(t, err)
	f.open = s
	return s
}

func (f *file) controls() storetest.Clock {
	return storetest.Clock{
		Now:     f.Now,
		Advance: func(d time.Duration) { f.Travel(d) },
		SetBack: func(d time.Duration) { f.off -= d },
	}
}

// hung returns a store that another transaction keeps from writing until the test ends.
func hung(t *testing.T) *boltstore.Store {
	s := newFile(t).open
	release, err := s.HoldWrites()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, release()) })
	return s
}

func TestQuota(t *testing.T) {
	storetest.Quota(t, func(t *testing.T) storetest.QuotaHarness {
		f := newFile(t)
		return storetest.QuotaHarness{
			Clock:  f.controls(),
			Store:  f.open,
			Hung:   hung(t),
			Reopen: func() quota.Store { return f.reopen(t) },
			Kept:   f.open.Kept,
		}
	})
}

func TestMemory(t *testing.T) {
	storetest.Memory(t, func(t *testing.T) storetest.MemoryHarness {
		f := newFile(t)
		return storetest.MemoryHarness{
			Clock:  f.controls(),
			Memory: f.open,
			Reopen: func() store.Facts { return f.reopen(t) },
		}
	})
}

func charge(t *testing.T, s *boltstore.Store, key string, w quota.Window) quota.Result {
	t.Helper()
	got, err := s.Decide(context.Background(), quota.Request{Key: key, Window: w, Cost: 1, Record: true})
	require.NoError(t, err)
	return got
}

// The clock is set back a day while the program does not run.
func TestTimeDoesNotGoBackOverARestart(t *testing.T) {
	f := newFile(t)
	w := quota.Window{Limit: 1, Period: time.Hour}
	charge(t, f.open, "k", w)
	f.off -= 24 * time.Hour
	s := f.reopen(t)
	got := charge(t, s, "k", w)
	require.True(t, got.Limited)
	require.Equal(t, time.Hour, got.RetryAfter)
	require.Equal(t, f.Now().Add(time.Hour).UnixMicro(), got.ResetAt.UnixMicro(), "in the clock's own time")
	f.Travel(time.Hour)
	require.False(t, charge(t, s, "k", w).Limited)
}

func TestTheFileDoesNotGrowWithKeysThatHaveGone(t *testing.T) {
	f := newFile(t)
	w := quota.Window{Limit: 1, Period: time.Minute}
	size := func() int64 {
		info, err := os.Stat(f.path)
		require.NoError(t, err)
		return info.Size()
	}
	crowd := func(name string) {
		for i := range 300 {
			charge(t, f.open, name+string(rune('a'+i)), w)
		}
		f.Travel(time.Minute)
	}
	crowd("1")
	crowd("2")
	before := size()
	for _, name := range []string{"3", "4", "5", "6", "7", "8"} {
		crowd(name)
	}
	require.Equal(t, before, size())
	require.Less(t, f.open.Kept(), 600)
}

func TestOnlyItsOwnerMayReadTheFile(t *testing.T) {
	info, err := os.Stat(newFile(t).path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}
