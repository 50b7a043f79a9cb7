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
	// Path of the file. Its directory has to exist.
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
		return nil, session.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("session: %w", err)
	case !json.Valid(data):
		return nil, fmt.Errorf("session: %s is damaged (%d bytes): restore it, or remove it to log in again", f.Path, len(data))
	}
	return data, nil
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
	dir := filepath.Dir(f.Path)
	tmp, err := os.CreateTemp(dir, filepath.Base(f.Path)+".*") // mode 0600
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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
