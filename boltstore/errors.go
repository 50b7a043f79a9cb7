package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

var (
	// ErrLocked is matched by the error for a file that is open already.
	ErrLocked = errors.New("locked by another process, or opened twice in this one")
	// ErrCorrupt is matched by the error for a file that is no store, or a damaged one.
	ErrCorrupt = errors.New("not a store, or damaged")
)

// panicked is what bbolt panicked with, as it does over a damaged file.
type panicked struct{ with any }

func (p *panicked) Error() string { return fmt.Sprint("bbolt panicked: ", p.with) }
func (p *panicked) Unwrap() error { return ErrCorrupt }

// contain turns a panic into an error, and so does a page of the file that is not
// there any more, which would be the end of the process otherwise.
func contain(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p}
		}
	}()
	return f()
}

// explain says which file it was about, what was being done, and what can be done.
func (s *Store) explain(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	if system, ok := err.(*fs.PathError); ok && system.Op == doing && system.Path == s.path {
		err = system.Err // the rest is said below
	}
	hint := ""
	switch {
	case is(berrors.ErrTimeout):
		err, hint = ErrLocked, "end the other one, or use another file"
	case is(berrors.ErrDatabaseNotOpen):
		err = quota.ErrClosed
	case is(berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum, berrors.ErrInvalidMapping, quota.ErrState),
		strings.Contains(err.Error(), "file size too small"): // of which bbolt has the text alone
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	case is(fs.ErrNotExist):
		hint = "make its directory first"
	case is(syscall.EROFS):
		hint = "use a file system that can be written"
	case is(fs.ErrPermission):
		hint = "the file and its directory must be writable for this user"
	case is(syscall.EISDIR):
		hint = "name a file, not a directory"
	case is(syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG), strings.Contains(err.Error(), "file resize error"):
		// Of what has kept the file from growing, bbolt hands on the text alone.
		hint = "free some space on the disk"
	}
	if is(ErrCorrupt) {
		hint = "restore it from a backup, or move it away to start with an empty one"
	}
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return fmt.Errorf("%w: %s %s: %w%s", store.ErrUnavailable, doing, s.path, err, hint)
}
