//go:build unix

package boltstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

// fillDisk is set for a copy of the test binary, which may not make files larger than
// 64 KiB. That stands for a disk that is full.
const fillDisk = "WEIR_TEST_FILL_DISK"

const small = 64 << 10

func longKey(i int) string { return strconv.Itoa(i) + strings.Repeat("x", 1000) }

// chargeUntilFull prints what went wrong with which charge, and then, with the limit
// taken away, whether it goes on.
func chargeUntilFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	charge := func(i int) error {
		r := quota.Request{Key: longKey(i), Window: hourly, Cost: 1, Record: true}
		_, err := s.Decide(context.Background(), r)
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	before := limit
	limit.Cur = small
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	n := 0
	for ; err == nil; n++ {
		err = charge(n)
	}
	again := charge(n)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	fmt.Printf("%d\n%v\n%v\n%v\n", n-1, errors.Is(err, store.ErrUnavailable) && again != nil, err, charge(n))
	return nil
}

// What was charged before the disk was full is there, what is charged then fails, and
// it goes on when there is room.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fillDisk+"="+path)
	out, err := child.Output()
	require.NoError(t, err)
	said := strings.Split(string(out), "\n")
	require.Len(t, said, 5, "%s", out)
	require.Equal(t, "true", said[1])
	require.Contains(t, said[2], path)
	require.Contains(t, said[2], "free some space")
	require.Equal(t, "<nil>", said[3], "there is room again")

	s, err := boltstore.Open(path, boltstore.Options{})
	require.NoError(t, err)
	defer s.Close()
	n, err := strconv.Atoi(said[0])
	require.NoError(t, err)
	require.Greater(t, n, 5)
	for i := range n {
		got, err := s.Decide(context.Background(), quota.Request{Key: longKey(i), Window: hourly, Cost: 3})
		require.NoError(t, err)
		require.True(t, got.Limited, "charge %d is lost", i)
	}
}
