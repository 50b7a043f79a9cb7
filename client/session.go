package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/gotd/td/session"
)

// SessionFile keeps a session in one file. It differs from gotd's session.FileStorage in
// two ways that count when a process dies: the file is replaced as a whole, so that it is
// never half written, and a damaged file is an error, because a new login at each start is
// itself limited.
//
// A symbolic link stays: the file that it points to is replaced. A file that cannot be
// replaced, because it is a mount point (a file mounted into a container) or because its
// directory is read-only, is written in place and synced; a machine that loses power during
// that write can damage it. Mount the directory to avoid that.
//
// The file has mode 0600; one that belongs to another user keeps its mode.
type SessionFile struct {
	// Path of the file. It is an error to start if it can neither be read nor made.
	Path string

	mu sync.Mutex
}

var _ session.Storage = (*SessionFile)(nil)

// LoadSession implements session.Storage. A file that does not exist or is empty is
// session.ErrNotFound, which makes the client log in.
func (f *SessionFile) LoadSession(ctx context.Context) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Path == "" {
		return nil, errors.New("session: path is empty: want that of a file")
	}
	data, err := readFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		// A login that could not be kept would be spent, and gotd would try for ever.
		if unwritable := f.writable(); unwritable != nil {
			if err != nil {
				return nil, fmt.Errorf("session: no file can be made for %s: %w", f.Path, unwritable)
			}
			return nil, fmt.Errorf("session: %s is empty and cannot be written: %w", f.Path, unwritable)
		}
		return nil, session.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	// gotd takes a session that it does not know for none, and would log in.
	kept := &session.StorageMemory{}
	if err := kept.StoreSession(ctx, data); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if _, err := (&session.Loader{Storage: kept}).Load(ctx); err != nil {
		return nil, fmt.Errorf("session: %s is damaged or of another version (%d bytes): restore it, or remove it to log in again", f.Path, len(data))
	}
	return data, nil
}

// maxSession is far more than any session takes. A longer file is not a session.
const maxSession = 1 << 20

func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil {
		if err := notPipe(path, info); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: want a file (Docker makes a directory where the file that it should mount does not exist)", path)
	}
	return io.ReadAll(io.LimitReader(file, maxSession))
}

// notPipe refuses a named pipe: opening one blocks until somebody opens its other end, and
// no context ends that.
func notPipe(path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeNamedPipe != 0 {
		return fmt.Errorf("%s is a named pipe: want a file", path)
	}
	return nil
}

// writable reports why a session could not be kept. It leaves nothing behind.
func (f *SessionFile) writable() error {
	path, err := target(f.Path)
	if err != nil {
		return err
	}
	tmp, err := temporary(path)
	if err == nil {
		return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
	}
	file, inPlace := os.OpenFile(path, os.O_WRONLY, 0)
	if inPlace != nil {
		return err
	}
	return file.Close()
}

// StoreSession implements session.Storage. When it returns nil, the session is on
// disk.
func (f *SessionFile) StoreSession(_ context.Context, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, err := target(f.Path)
	if err == nil {
		err = replace(path, data)
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// maxLinks is how many symbolic links in a row are followed, as many as Linux does.
const maxLinks = 40

// target follows the symbolic links at path to the file that they stand for, which need
// not exist.
func target(path string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or no file
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: more than %d symbolic links in a row", path, maxLinks)
}

// temporary makes a file beside that at path, with mode 0600. It always has the same name,
// so that a process that is killed leaves one at most, for the next to remove. What lies
// under that name is removed, not opened: it may be a link, or a file that others may read.
func temporary(path string) (*os.File, error) {
	path += ".tmp"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// replace puts a new file in the place of that at path, or writes the old one in place
// where that is the only way.
func replace(path string, data []byte) error {
	info, missing := os.Stat(path)
	if missing == nil && !info.Mode().IsRegular() {
		if err := notPipe(path, info); err != nil {
			return err
		}
		return writeInPlace(path, data) // a device is not to become a file
	}
	tmp, err := temporary(path)
	if err != nil {
		if missing == nil {
			return writeInPlace(path, data)
		}
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	err = os.Rename(tmp.Name(), path)
	switch {
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return writeInPlace(path, data) // it is a mount point
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeInPlace overwrites the file at path. It does not truncate the file first, so that a
// process that is killed leaves the old session or the new one, not an empty file.
func writeInPlace(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	regular := info.Mode().IsRegular()
	if regular && info.Mode().Perm()&0o077 != 0 {
		_ = file.Chmod(0o600) // only its owner may do that
	}
	if _, err := file.Write(data); err != nil || !regular {
		return err
	}
	return errors.Join(file.Truncate(int64(len(data))), file.Sync())
}

func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be synced there
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
