package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

const (
	saveSmall  = "upload.saveFilePart"
	getFile    = "upload.getFile"
	getCDNFile = "upload.getCdnFile"
	getHashes  = "upload.getFileHashes"
)

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
			return locationOf(m)
		}
	}
	require.Fail(t, "the file has no message")
	return nil
}

func locationOf(m tg.Message) tg.InputFileLocationClass {
	return m.Media.(*tg.MessageMediaDocument).Document.(*tg.Document).AsInputDocumentFileLocation("")
}

// transfer is one way for a file to go.
type transfer struct {
	name    string
	method  string // of the calls that are flooded
	dc      int    // where they go
	known   int    // where the client knows them to go
	threads int    // how many of them there can be at once
	run     func(ctx context.Context) error
}

// upload is one to an invoker.
func upload(via tg.Invoker, data []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := uploader.NewUploader(tg.NewClient(via)).WithPartSize(4<<10).FromBytes(ctx, "f", data)
		return err
	}
}

// ownTransfers are ways of gotd's uploader and downloader in the account's own data
// centre.
func ownTransfers(t *testing.T, w *world, c *client.Client) []transfer {
	t.Helper()
	pool := opened(t)(c.Pool(3))
	data := content(t, 20<<10)
	home := fileFrom(t, w.AddUser("sender"), data, 2)
	return []transfer{
		{"upload", saveSmall, 2, 2, 1, upload(c, data)},
		{"upload side by side over a pool", savePart, 2, 2, 3, func(ctx context.Context) error {
			_, err := uploader.NewUploader(tg.NewClient(pool)).WithPartSize(4<<10).WithThreads(3).
				FromReader(ctx, "f", bytes.NewReader(data)) // its size is not known, which makes it a large one
			return err
		}},
		{"download", getFile, 2, 2, 1, download{c, c, home, data, false, false}.run},
		{"download, verified", getHashes, 2, 2, 1, download{c, c, home, data, false, true}.run},
	}
}

// farTransfers are ways to and from other data centres.
func farTransfers(ctx context.Context, t *testing.T, w *world, c *client.Client) []transfer {
	t.Helper()
	other, media := opened(t)(c.DC(ctx, 4, 3)), opened(t)(c.MediaOnly(ctx, 4, 1))
	data := content(t, 20<<10)
	user := w.AddUser("sender")
	home, far := fileFrom(t, user, data, 2), fileFrom(t, user, data, 4)
	return []transfer{
		{"upload to another data centre", saveSmall, 4, 4, 1, upload(other, data)},
		{"upload to servers for files only", saveSmall, 4, 4, 1, upload(media, data)},
		{"download that gotd moves to another data centre", getFile, 4, 2, 1, download{c, c, far, data, false, false}.run},
		{"download over a pool", getFile, 4, 4, 1, download{c, other, far, data, false, false}.run},
		{"download side by side over a pool", getFile, 4, 4, 3, func(ctx context.Context) error {
			var out file
			_, err := c.Downloader().WithAllowCDN(false).WithPartSize(4<<10).Download(c.FileSource(other), far).WithThreads(3).Parallel(ctx, &out)
			return same(err, data, out.content())
		}},
		{"download from a CDN", getCDNFile, cdnDC, cdnDC, 1, func(ctx context.Context) error {
			var out bytes.Buffer
			_, err := c.Download(home).Stream(ctx, &out)
			return same(err, data, out.Bytes())
		}},
		{"download from a CDN by way of a pool", getCDNFile, cdnDC, cdnDC, 1, download{c, other, far, data, true, false}.run},
	}
}

func opened(t *testing.T) func(telegram.CloseInvoker, error) telegram.CloseInvoker {
	return func(pool telegram.CloseInvoker, err error) telegram.CloseInvoker {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		return pool
	}
}

// download is one that knows what has to come.
type download struct {
	client   *client.Client
	via      tg.Invoker
	location tg.InputFileLocationClass
	want     []byte
	cdn      bool
	verify   bool
}

func (d download) run(ctx context.Context) error {
	var out bytes.Buffer
	_, err := d.client.Downloader().WithAllowCDN(d.cdn).WithPartSize(8<<10).
		Download(d.client.FileSource(d.via), d.location).WithVerify(d.verify).Stream(ctx, &out)
	return same(err, d.want, out.Bytes())
}

// same is err, or the difference between what came and what should have.
func same(err error, want, got []byte) error {
	if err == nil && !bytes.Equal(want, got) {
		return fmt.Errorf("%d bytes came, which are not the %d of the file", len(got), len(want))
	}
	return err
}

func TestTransfersUnderFloods(t *testing.T) {
	allowed := settings{client: client.Options{Telegram: telegram.Options{AllowCDN: true}}}
	inWorld(t, allowed, func(ctx context.Context, w *world, c *client.Client) {
		for _, way := range append(ownTransfers(t, w, c), farTransfers(ctx, t, w, c)...) {
			t.Run(way.name, func(t *testing.T) {
				w.calm(t)
				require.NoError(t, ended(t, call(func() error { return way.run(ctx) })))
				endsAtOnce(ctx, t, w, way)
				arrivesThroughPremiumWaits(ctx, t, w, c, way)
				thresholdHolds(ctx, t, w, c, way)
			})
		}
	})
}

// endsAtOnce tells that a flood above the threshold ends a transfer once and at once.
func endsAtOnce(ctx context.Context, t *testing.T, w *world, way transfer) {
	t.Helper()
	w.calm(t)
	require.NoError(t, w.Flood(localdc.Scope{Method: way.method, DC: way.dc}, time.Hour))

	// gotd would sleep by the real clock, for an hour.
	wait := asWait(t, ended(t, call(func() error { return way.run(ctx) })))
	require.Equal(t, way.method, wait.Method)
	require.Equal(t, way.known, wait.DC)
	require.Equal(t, time.Hour, wait.Wait)
	// All threads may be on the wire before the first answer.
	met := w.Record().Methods[way.method].Floods
	require.True(t, met >= 1 && met <= way.threads, "met by %d", met)

	wait = asWait(t, ended(t, call(func() error { return way.run(ctx) })))
	require.Equal(t, flood.KnownFlood, wait.Reason)
	require.Equal(t, met, w.Record().Methods[way.method].Floods, "it is known now")
}

// arrivesThroughPremiumWaits tells that they are repeated, more often than a call is tried
// again after other floods.
func arrivesThroughPremiumWaits(ctx context.Context, t *testing.T, w *world, c *client.Client, way transfer) {
	t.Helper()
	w.calm(t)
	const floods = 2 * invoke.DefaultMaxRetries
	_, err := w.Fail(localdc.Scope{Method: way.method, DC: way.dc}, 420, "FLOOD_PREMIUM_WAIT_1", floods)
	require.NoError(t, err)
	done := call(func() error { return way.run(ctx) })
	w.sitOut(t, c, func() bool { return len(done) == 1 })
	require.NoError(t, <-done)
	require.Equal(t, floods, w.Record().Methods[way.method].Floods)
}

// thresholdHolds tells that the threshold of a call holds, be it lower or higher than the
// client's, for a flood that is met and for one that is known.
func thresholdHolds(ctx context.Context, t *testing.T, w *world, c *client.Client, way transfer) {
	t.Helper()
	w.calm(t)
	run := func(threshold flood.Threshold) <-chan error {
		return call(func() error { return way.run(invoke.WithThreshold(ctx, threshold)) })
	}
	waiting := func() (n int) {
		for _, record := range c.Floods() {
			n += record.Waiting
		}
		if w.seen.onTheWire() > 0 {
			return 0 // a part of it may yet come to wait
		}
		return n
	}
	// 8 s would be sat out by default, and 12 s would not.
	require.NoError(t, w.Flood(localdc.Scope{Method: way.method, DC: way.dc}, 8*time.Second))
	// Of parts side by side, one meets the flood, and the error may be that of one that knew.
	require.Contains(t, []flood.Reason{flood.OverThreshold, flood.KnownFlood}, asWait(t, ended(t, run(flood.Never))).Reason)
	require.Equal(t, flood.KnownFlood, asWait(t, ended(t, run(flood.UpTo(7*time.Second)))).Reason)
	w.now.Travel(8 * time.Second)

	require.NoError(t, w.Flood(localdc.Scope{Method: way.method, DC: way.dc}, 12*time.Second))
	met := run(flood.UpTo(12 * time.Second))
	eventually(t, func() bool { return waiting() > 0 }, "it waits for the flood that it met")
	before := waiting()
	known := run(flood.Always)
	eventually(t, func() bool { return waiting() > before }, "it waits for the flood that is known")
	require.Empty(t, met)
	w.now.Travel(12 * time.Second)
	require.NoError(t, ended(t, met))
	require.NoError(t, ended(t, known))
}

// gotd's downloader takes an error that matches context.DeadlineExceeded for a timeout of the
// network and asks again at once. Package invoke tests all kinds of refusals.
func TestDownloadThatCannotStartInTimeEndsAtOnce(t *testing.T) {
	limits := map[classify.Category]ratelimit.Change{classify.Media: ratelimit.Rate(0.001).Burst(1)}
	inWorld(t, noChats(limits), func(ctx context.Context, w *world, c *client.Client) {
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
