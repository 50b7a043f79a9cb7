//go:build unix

package client_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/client"
)

// What an older program, or another user, has left under the name of the temporary file
// must not end up as the session.
func TestSessionFileIs0600WhateverLiesInTheWay(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, dir, tmp string){
		"a file that all may read": func(t *testing.T, _, tmp string) {
			require.NoError(t, os.WriteFile(tmp, []byte("left over"), 0o600))
			require.NoError(t, os.Chmod(tmp, 0o644))
		},
		"a link": func(t *testing.T, dir, tmp string) {
			other := filepath.Join(dir, "other")
			require.NoError(t, os.WriteFile(other, []byte("other"), 0o600))
			require.NoError(t, os.Symlink(other, tmp))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "session.json")
			leave(t, dir, path+".tmp")
			require.NoError(t, (&client.SessionFile{Path: path}).StoreSession(t.Context(), aSession(t, "a")))
			info, err := os.Lstat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode(), "a regular file that its owner alone may read")
			if other, err := os.ReadFile(filepath.Join(dir, "other")); err == nil {
				require.Equal(t, "other", string(other))
			}
		})
	}
}

func TestSessionFileThatIsAPipeIsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.json")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	file := &client.SessionFile{Path: path}
	for name, do := range map[string]func() error{
		"load":  func() error { _, err := file.LoadSession(t.Context()); return err },
		"store": func() error { return (&client.SessionFile{Path: path}).StoreSession(t.Context(), aSession(t, "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- do() }()
			select {
			case err := <-done:
				require.ErrorContains(t, err, "named pipe")
				require.ErrorContains(t, err, path)
			case <-time.After(5 * time.Second):
				require.Fail(t, "it blocks")
			}
		})
	}
}
