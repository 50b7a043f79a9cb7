//go:build unix

package boltstore_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The binary runs itself anew as the process that is killed, or that has no room.
func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		chargeUntilKilled(path)
		return
	}
	if path := os.Getenv(fillDisk); path != "" {
		if err := chargeUntilFull(path); err != nil {
			fmt.Println(err)
		}
		return
	}
	// Who waits for a lock that bbolt has left when it panicked waits for good.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*DB).View"), goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*DB).Update"))
}
