package boltstore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

var hourly = quota.Window{Limit: 3, Period: time.Hour}

func open(path string) (*boltstore.Store, error) {
	return boltstore.Open(path, boltstore.Options{LockTimeout: 10 * time.Millisecond})
}

// refusesToOpen wants an error that names the file and says what can be done.
func refusesToOpen(t *testing.T, path string, is error, says ...string) {
	t.Helper()
	_, err := open(path)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, err, is)
	for _, text := range append(says, path) {
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, 1, strings.Count(err.Error(), path), "%v", err)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.db")
	s, err := open(path)
	require.NoError(t, err)
	refusesToOpen(t, path, boltstore.ErrLocked, "locked by another process", "use another file")
	require.NoError(t, s.Close())

	refusesToOpen(t, filepath.Join(dir, "no", "weir.db"), fs.ErrNotExist, "make its directory first")
	refusesToOpen(t, dir, syscall.EISDIR, "name a file")
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("hello"), 0o600))
	refusesToOpen(t, text, boltstore.ErrCorrupt, "not a store, or damaged", "restore it from a backup")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("hello", 100_000)), 0o600))
	refusesToOpen(t, text, boltstore.ErrCorrupt)
	require.NoError(t, os.WriteFile(text, make([]byte, 100_000), 0o600))
	refusesToOpen(t, text, boltstore.ErrCorrupt)

	for cause, says := range map[error]string{
		syscall.EACCES: "must be writable for this user",
		syscall.EPERM:  "must be writable for this user",
		syscall.EROFS:  "can be written",
		syscall.ENOSPC: "free some space",
	} {
		_, err := boltstore.Open(path, boltstore.Options{}.FailOpen(cause))
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, says)
	}
}

func TestAFileOfALaterVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("weir"))
		if err != nil {
			return err
		}
		return b.Put([]byte("format"), []byte{2})
	}))
	require.NoError(t, db.Close())
	_, err = open(path)
	require.ErrorContains(t, err, "written by a later version")
	refused := err
	_, err = open(path)
	require.EqualError(t, err, refused.Error(), "it is not left locked")
}

// A file that lost its end, or any of its pages, is an error, and no panic and no
// process that ends over a page that is not there.
func TestDamagedFiles(t *testing.T) {
	f := newFile(t)
	for i := range 500 {
		charge(t, f.open, strconv.Itoa(i), hourly)
	}
	require.NoError(t, f.open.Close())
	whole, err := os.ReadFile(f.path)
	require.NoError(t, err)
	db, err := bolt.Open(f.path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		whole = whole[:tx.Size()] // what is in use of it
		return nil
	}))
	require.NoError(t, db.Close())

	const page = 4096
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "damaged.db")
	failed := 0
	for i := range 30 {
		damaged := bytes.Clone(whole)
		if i%3 == 0 {
			damaged = damaged[:random.IntN(len(damaged))]
		} else {
			at := random.IntN(len(damaged)/page) * page
			for j := range page {
				damaged[at+j] = byte(random.Uint32()) * byte(i%3-1) // of noise or of zeros
			}
		}
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		s, err := boltstore.Open(path, boltstore.Options{Clock: f.wall}.Unsafe())
		if err == nil {
			for i := range 500 {
				for _, record := range []bool{false, true} {
					r := quota.Request{Key: strconv.Itoa(i), Window: hourly, Cost: 1, Record: record}
					if _, err2 := s.Decide(context.Background(), r); err2 != nil {
						err = err2
					}
				}
			}
			_ = s.Close()
		}
		if err != nil {
			failed++
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.NotErrorIs(t, err, boltstore.ErrLocked, "the last one is not released")
			require.ErrorContains(t, err, path)
		}
	}
	require.Greater(t, failed, 10)
}

// The file is cut off while it is open: an error, and not the end of the process.
func TestAFileThatIsCutOffUnderIt(t *testing.T) {
	f := newFile(t)
	for i := range 500 {
		charge(t, f.open, strconv.Itoa(i), hourly)
	}
	require.NoError(t, os.Truncate(f.path, 4096))
	for _, record := range []bool{false, true} {
		r := quota.Request{Key: "300", Window: hourly, Cost: 1, Record: record}
		_, err := f.open.Decide(context.Background(), r)
		require.ErrorIs(t, err, boltstore.ErrCorrupt)
	}
}

// One state that is damaged is the trouble of one key.
func TestADamagedStateIsTheTroubleOfItsKey(t *testing.T) {
	f := newFile(t)
	require.NoError(t, f.open.Break("bad"))
	_, err := f.open.Decide(context.Background(), quota.Request{Key: "bad", Window: hourly, Cost: 1, Record: true})
	require.ErrorIs(t, err, boltstore.ErrCorrupt)
	require.False(t, charge(t, f.open, "good", hourly).Limited)
	require.NoError(t, f.open.Reset(context.Background(), "bad"))
	require.False(t, charge(t, f.open, "bad", hourly).Limited)
}

// Close under calls: each is either recorded or told.
func TestCloseUnderCalls(t *testing.T) {
	f := newFile(t)
	w := quota.Window{Limit: 1 << 20, Period: time.Hour}
	recorded := make([]int, 16)
	var all sync.WaitGroup
	for i := range recorded {
		all.Go(func() {
			for {
				r := quota.Request{Key: strconv.Itoa(i), Window: w, Cost: 1, Record: true}
				_, err := f.open.Decide(context.Background(), r)
				if err != nil {
					if !errors.Is(err, quota.ErrClosed) {
						t.Error(err)
					}
					return
				}
				recorded[i]++
			}
		})
	}
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, f.open.Close())
	all.Wait()
	require.ErrorIs(t, f.open.Watch(context.Background(), nil), quota.ErrClosed)
	require.ErrorIs(t, f.open.Save(context.Background(), store.Fact{Key: "k"}), quota.ErrClosed)
	_, err := f.open.Load(context.Background())
	require.ErrorIs(t, err, quota.ErrClosed)
	s := f.reopen(t)
	for i, n := range recorded {
		got, err := s.Decide(context.Background(), quota.Request{Key: strconv.Itoa(i), Window: w, Cost: 1})
		require.NoError(t, err)
		require.Equal(t, n, w.Limit-got.Remaining)
	}
}

func TestAFileThatIsOverwrittenUnderCallsHangsNobody(t *testing.T) {
	for name, harm := range map[string]func(*testing.T, string){
		"garbage": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, 1<<16), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"empty": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			s, err := boltstore.Open(path, boltstore.Options{})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			var calls sync.WaitGroup
			for i := range 10 {
				calls.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						// A context that does not end: the calls have to by themselves.
						_, _ = s.Decide(context.Background(), quota.Request{
							Key: quota.Key(i, n), Window: quota.Window{Limit: 1, Period: time.Hour}, Cost: 1, Record: true,
						})
						_, _ = s.Load(context.Background())
						time.Sleep(time.Millisecond) // so that some look while another writes
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			harm(t, path)
			time.Sleep(200 * time.Millisecond)
			cancel()
			ended := make(chan struct{})
			go func() {
				calls.Wait()
				_ = s.Close()
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
		})
	}
}
