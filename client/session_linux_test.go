package client_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that is mounted into a container cannot be replaced: rename fails with EBUSY.
func TestSessionFileThatIsMountedIsWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	host, path := filepath.Join(dir, "host.json"), filepath.Join(dir, "mounted.json")
	for _, file := range []string{host, path} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	if err := syscall.Mount(host, path, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("only root may mount: %v; a read-only directory stands in for it", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(path, 0)) })
	keepsSessions(t, path)
	only(t, dir, "host.json", "mounted.json")
	data, err := os.ReadFile(host)
	require.NoError(t, err)
	require.NotEmpty(t, data, "the session is on the host")
}
