//go:build unix

package boltstore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
)

// childFile is set for a copy of the test binary that charges until it is killed;
// killTimes is how often it is.
const (
	childFile = "WEIR_TEST_CHARGE_UNTIL_KILLED"
	killTimes = "WEIR_TEST_KILL_TIMES"
)

// chargers charge at the same time, each to its own key, so that transactions are shared.
const chargers = 8

var chargeWindow = quota.Window{Limit: quota.MaxLimit, Period: time.Hour, Kind: quota.FirstHit}

func chargeUntilKilled(path string) {
	s, err := boltstore.Open(path, boltstore.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var all sync.WaitGroup
	for i := range chargers {
		all.Go(func() {
			for {
				r := quota.Request{Key: strconv.Itoa(i), Window: chargeWindow, Cost: 1, Record: true}
				got, err := s.Decide(context.Background(), r)
				if err != nil {
					fmt.Println("error", err)
					return
				}
				// One write, which is whole or not there when the process is killed.
				_, _ = os.Stdout.WriteString(fmt.Sprintf("%d %d\n", i, quota.MaxLimit-got.Remaining))
			}
		})
	}
	all.Wait()
}

// A process is killed at random moments. What it had been told is recorded is there.
// It is killed 15 times, or as often as the environment says.
func TestKilledLosesNoCharge(t *testing.T) {
	times := 15
	if n, err := strconv.Atoi(os.Getenv(killTimes)); err == nil {
		times = n
	}
	path := filepath.Join(t.TempDir(), "weir.db")
	seen := make(map[string]int) // the last count that was printed, by key
	total := 0
	for range times {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childFile+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		var kill *time.Timer
		for lines.Scan() {
			if kill == nil {
				kill = time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = child.Process.Kill() })
			}
			var key string
			var count int
			_, err := fmt.Sscan(lines.Text(), &key, &count)
			require.NoError(t, err, lines.Text())
			require.Greater(t, count, seen[key])
			seen[key] = count
			total++
		}
		require.Error(t, child.Wait())

		s, err := boltstore.Open(path, boltstore.Options{LockTimeout: 10 * time.Second})
		require.NoError(t, err)
		for key, count := range seen {
			got, err := s.Decide(context.Background(), quota.Request{Key: key, Window: chargeWindow, Cost: 1})
			require.NoError(t, err)
			require.GreaterOrEqual(t, quota.MaxLimit-got.Remaining, count, "key %s", key)
			require.LessOrEqual(t, quota.MaxLimit-got.Remaining, count+times, "key %s: more than was charged", key)
		}
		require.NoError(t, s.Close())
	}
	require.Len(t, seen, chargers)
	t.Logf("killed %d times; %d charges were recorded, and none lost", times, total)
}
