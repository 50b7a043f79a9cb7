//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package boltstore

import (
	"os"
	"syscall"
)

// release closes a file that bbolt has left open and locked when it panicked. To close
// it is not enough, since it stays mapped, and with that locked.
func release(f *os.File) error {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return f.Close()
}
