package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

const (
	saveSmall  = "upload.saveFilePart"
	getFile    = "upload.getFile"
	getCDNFile = "upload.getCdnFile"
	getHashes  = "upload.getFileHashes"
)

// withCDN are the settings of a client that can be sent to a CDN.
func withCDN(s settings) settings {
	s.client.Telegram = telegram.Options{AllowCDN: true}
	return s
}

func content(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	_, err := rand.Read(data)
	require.NoError(t, err)
	return data
}

// fileFrom is a file that lives in a data centre.
func fileFrom(t *testing.T, user *localdc.User, data []byte, dc int) tg.InputFileLocationClass {
	t.Helper()
	id, err := user.SendFile("file.bin", data, dc)
	require.NoError(t, err)
	for _, m := range user.Messages() {
		if m.ID == id {
			return m.Media.(*tg.MessageMediaDocument).Document.(*tg.Document).AsInputDocumentFileLocation("")
		}
	}
	require.Fail(t, "the file has no message")
	return nil
}

// transfer is one way for a file to go.
type transfer struct {
	name   string
	method string
	dc     int // where the parts go
	known  int // where the client knows them to go
	run    func(ctx context.Context) error
}

// transfers are the ways of gotd's uploader and downloader.
func transfers(ctx context.Context, t *testing.T, w *world, c *client.Client) []transfer {
	t.Helper()
	opened := func(pool telegram.CloseInvoker, err error) telegram.CloseInvoker {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		return pool
	}
	own, other, media := opened(c.Pool(3)), opened(c.DC(ctx, 4, 1)), opened(c.MediaOnly(ctx, 4, 1))

	data := content(t, 20<<10)
	up := func(via tg.Invoker) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := uploader.NewUploader(tg.NewClient(via)).WithPartSize(4<<10).FromBytes(ctx, "f", data)
			return err
		}
	}
	user := w.AddUser("sender")
	home, far := fileFrom(t, user, data, 2), fileFrom(t, user, data, 4)
	down := func(via tg.Invoker, location tg.InputFileLocationClass, cdn, verify bool) func(context.Context) error {
		return func(ctx context.Context) error {
			var out bytes.Buffer
			_, err := c.Downloader().WithAllowCDN(cdn).WithPartSize(8<<10).
				Download(c.FileSource(via), location).WithVerify(verify).Stream(ctx, &out)
			if err == nil {
				assert.Equal(t, data, out.Bytes())
			}
			return err
		}
	}
	return []transfer{
		{"upload", saveSmall, 2, 2, up(c)},
		{"upload side by side over a pool", savePart, 2, 2, func(ctx context.Context) error {
			_, err := uploader.NewUploader(tg.NewClient(own)).WithPartSize(4<<10).WithThreads(3).
				FromReader(ctx, "f", bytes.NewReader(data[1:]))
			return err
		}},
		{"upload to another data centre", saveSmall, 4, 4, up(other)},
		{"upload to servers for files only", saveSmall, 4, 4, up(media)},
		{"download", getFile, 2, 2, down(c, home, false, false)},
		{"download, verified", getHashes, 2, 2, down(c, home, false, true)},
		{"download that gotd moves to another data centre", getFile, 4, 2, down(c, far, false, false)},
		{"download over a pool", getFile, 4, 4, down(other, far, false, false)},
		{"download from a CDN", getCDNFile, cdnDC, cdnDC, down(c, home, true, false)},
		{"download from a CDN by way of a pool", getCDNFile, cdnDC, cdnDC, down(other, far, true, false)},
	}
}

func TestFloodAboveTheThresholdEndsATransferOnceAndAtOnce(t *testing.T) {
	inWorld(t, withCDN(settings{}), func(ctx context.Context, w *world, c *client.Client) {
		for _, way := range transfers(ctx, t, w, c) {
			t.Run(way.name, func(t *testing.T) {
				w.calm(t)
				require.NoError(t, ended(t, call(func() error { return way.run(ctx) })))
				w.ResetRecord()
				require.NoError(t, w.Flood(localdc.Scope{Method: way.method, DC: way.dc}, time.Hour))

				// gotd would sleep by the real clock, for an hour.
				wait := asWait(t, ended(t, call(func() error { return way.run(ctx) })))
				require.Equal(t, way.method, wait.Method)
				require.Equal(t, way.known, wait.DC)
				require.Equal(t, time.Hour, wait.Wait)
				threads := 1
				if way.method == savePart {
					threads = 3 // all of them may be on the wire before the first answer
				}
				met := w.Record().Methods[way.method].Floods
				require.True(t, met >= 1 && met <= threads, "met by %d", met)

				wait = asWait(t, ended(t, call(func() error { return way.run(ctx) })))
				require.Equal(t, flood.KnownFlood, wait.Reason)
				require.Equal(t, met, w.Record().Methods[way.method].Floods, "it is known now")
			})
		}
	})
}

// gotd's downloader takes what matches context.DeadlineExceeded for a timeout of the
// network, and would ask for the part again and again.
func TestDownloadThatCannotStartInTimeEndsAtOnce(t *testing.T) {
	limits := map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Rate(0.001).Burst(1)}
	var seen events
	s := noChats(limits)
	s.client.Observer = &seen
	inWorld(t, s, func(ctx context.Context, w *world, c *client.Client) {
		location := fileFrom(t, w.AddUser("sender"), []byte("x"), 2)
		download := func(ctx context.Context) error {
			_, err := c.Download(location).Stream(ctx, io.Discard)
			return err
		}
		require.NoError(t, download(ctx))
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := ended(t, call(func() error { return download(ctx) }))
		require.NoError(t, ctx.Err())
		require.ErrorIs(t, err, ratelimit.ErrDeferred)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var refused *ratelimit.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 1000*time.Second, refused.Wait.Round(time.Second))
		require.Equal(t, 1, w.calls(getFile))
	})
}

// file is a file in memory that can be written to in any order.
type file struct {
	mu   sync.Mutex
	data []byte
}

func (f *file) WriteAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if missing := int(offset) + len(p) - len(f.data); missing > 0 {
		f.data = append(f.data, make([]byte, missing)...)
	}
	return copy(f.data[offset:], p), nil
}

func (f *file) content() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data
}
