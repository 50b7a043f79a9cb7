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

	"github.com/gotd/td/session"
)

// SessionFile keeps a session in one file. It differs from gotd's in two ways that
// count when a process dies: the file is replaced as a whole, so that it is never
// half written, and a file that is damaged all the same is an error, since logging
// in anew at each start is itself limited. The file has mode 0600.
type SessionFile struct {
	// Path of the file. It is an error to start if it can neither be read nor made.
	Path string

	mu sync.Mutex
}

var _ session.Storage = (*SessionFile)(nil)

// LoadSession implements session.Storage. A file that does not exist is
// session.ErrNotFound, which makes the client log in.
func (f *SessionFile) LoadSession(ctx context.Context) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Path == "" {
		return nil, errors.New("session: path is empty: want that of a file")
	}
	data, err := readFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A login that could not be kept would be spent, and gotd try for ever.
		probe, err := f.temporary()
		if err != nil {
			return nil, fmt.Errorf("session: no file can be made for %s: %w", f.Path, err)
		}
		return nil, errors.Join(session.ErrNotFound, probe.Close(), os.Remove(probe.Name()))
	case err != nil:
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

// maxSession is far more than a session takes, and less than a file that is none may
// have.
const maxSession = 1 << 20

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxSession))
}

// temporary opens a file beside the session's, with mode 0600. It has always the same
// name, so that a process that is killed leaves one at most, for the next to use.
func (f *SessionFile) temporary() (*os.File, error) {
	return os.OpenFile(f.Path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// StoreSession implements session.Storage. When it returns nil, the session is on
// disk.
func (f *SessionFile) StoreSession(_ context.Context, data []byte) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("session: %w", err)
		}
	}()
	tmp, err := f.temporary()
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), f.Path); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be synced there
	}
	d, err := os.Open(filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
