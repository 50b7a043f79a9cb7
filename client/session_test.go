package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/session"

	"github.com/weirtg/weir/client"
)

// aSession is what gotd takes for a session, about as long as one.
func aSession(t *testing.T, address string) []byte {
	t.Helper()
	kept := &session.StorageMemory{}
	loader := session.Loader{Storage: kept}
	require.NoError(t, loader.Save(t.Context(), &session.Data{DC: 2, Addr: address, AuthKey: make([]byte, 256), AuthKeyID: make([]byte, 8)}))
	data, err := kept.LoadSession(t.Context())
	require.NoError(t, err)
	return data
}

// keepsSessions checks that the storage starts empty and keeps what is stored, a shorter
// session after a longer one too.
func keepsSessions(t *testing.T, path string) {
	t.Helper()
	file := &client.SessionFile{Path: path}
	_, err := file.LoadSession(t.Context())
	require.ErrorIs(t, err, session.ErrNotFound)
	for _, address := range []string{"a", strings.Repeat("a longer address ", 9), "b"} {
		want := aSession(t, address)
		require.NoError(t, file.StoreSession(t.Context(), want))
		got, err := (&client.SessionFile{Path: path}).LoadSession(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// only checks what a directory holds.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.Equal(t, names, got)
}

func TestEmptySessionFileIsNoSession(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "session.json")
	require.NoError(t, os.WriteFile(path, nil, 0o644)) // as touch makes it
	keepsSessions(t, path)
	only(t, dir, "session.json")
}

func TestSessionFileBehindSymbolicLinksIsReplacedAndTheLinksStay(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, real string){
		"to an empty file":              func(t *testing.T, real string) { require.NoError(t, os.WriteFile(real, nil, 0o600)) },
		"to a file that does not exist": func(*testing.T, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, links := filepath.Join(dir, "data"), filepath.Join(dir, "links")
			require.NoError(t, os.Mkdir(data, 0o700))
			require.NoError(t, os.Mkdir(links, 0o700))
			prepare(t, filepath.Join(data, "real.json"))
			require.NoError(t, os.Symlink("../data/real.json", filepath.Join(links, "second")))
			require.NoError(t, os.Symlink(filepath.Join(links, "second"), filepath.Join(links, "first")))
			keepsSessions(t, filepath.Join(links, "first"))
			only(t, links, "first", "second")
			only(t, data, "real.json")
			for _, link := range []string{"first", "second"} {
				info, err := os.Lstat(filepath.Join(links, link))
				require.NoError(t, err)
				require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is a link still", link)
			}
		})
	}
}

func TestSymbolicLinksInACircleAreAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "self")
	require.NoError(t, os.Symlink(path, path))
	file := &client.SessionFile{Path: path}
	_, err := file.LoadSession(t.Context())
	require.ErrorContains(t, err, "session: ")
	require.NotErrorIs(t, err, session.ErrNotFound)
	require.ErrorContains(t, file.StoreSession(t.Context(), aSession(t, "a")), "symbolic links in a row")
}

func TestDirectoryInPlaceOfASessionFileSaysWhereItMayComeFrom(t *testing.T) {
	_, err := (&client.SessionFile{Path: t.TempDir()}).LoadSession(t.Context())
	require.ErrorContains(t, err, "is a directory: want a file (Docker ")
}

func TestDeviceInPlaceOfASessionFileStaysADevice(t *testing.T) {
	file := &client.SessionFile{Path: os.DevNull}
	_, err := file.LoadSession(t.Context())
	require.ErrorIs(t, err, session.ErrNotFound)
	require.NoError(t, file.StoreSession(t.Context(), aSession(t, "a")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeDevice)
}

// A directory without the right to write stands for every reason for which no file can be
// made beside the session's.
func TestSessionFileInAReadOnlyDirectoryIsWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "session.json")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	// A directory of that name is in the way of the temporary file, for root too.
	require.NoError(t, os.Mkdir(path+".tmp", 0o500))
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	keepsSessions(t, path)
}
