package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
func (f *SessionFile) LoadSession(context.Context) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := os.ReadFile(f.Path)
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
	// gotd takes a session that it does not know for none, and logs in.
	var kept struct{ Version int }
	if err := json.Unmarshal(data, &kept); err != nil || kept.Version < 1 {
		return nil, fmt.Errorf("session: %s is damaged (%d bytes): restore it, or remove it to log in again", f.Path, len(data))
	}
	return data, nil
}

// temporary makes a file beside the session's, with mode 0600.
func (f *SessionFile) temporary() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(f.Path), filepath.Base(f.Path)+".*")
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
