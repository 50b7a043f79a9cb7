//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltstore

import "os"

// release closes a file that bbolt has left open and locked when it panicked.
func release(f *os.File) error { return f.Close() }
