package client

import (
	"context"
	"errors"
	"io"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram/downloader"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/ratelimit"
)

// Uploader returns gotd's uploader, on the connection of the client. To upload side by
// side, give uploader.NewUploader a pool: uploader.NewUploader(tg.NewClient(pool)).
func (c *Client) Uploader() *uploader.Uploader { return uploader.NewUploader(c.API()) }

// Downloader returns gotd's downloader, which follows Telegram.AllowCDN of the options.
// It downloads from what [Client.FileSource] returns; [Client.Download] puts the two
// together.
func (c *Client) Downloader() *downloader.Downloader {
	return downloader.NewDownloader().WithAllowCDN(c.allowCDN)
}

// Download prepares the download of a file, on the connection of the client. Nothing is
// sent before one of the builder's methods is called.
func (c *Client) Download(location tg.InputFileLocationClass) *downloader.Builder {
	return c.Downloader().Download(c.FileSource(c), location)
}

// DownloadWeb is Download for a file on the web that Telegram fetches.
func (c *Client) DownloadWeb(location tg.InputWebFileLocationClass) *downloader.Builder {
	return c.Downloader().Web(c.FileSource(c), location)
}

// FileSource is what gotd's downloader downloads from: its calls go through the invoker,
// which is the client itself or one of its pools, and those for a CDN through the pools
// of [Client.CDN]. So all of them pass the choke point. It is a downloader.CDNProvider
// too, without which there is no CDN:
//
//	c.Downloader().WithPartSize(64<<10).Download(c.FileSource(pool), location)
//
// A part that cannot be had before the context's deadline ends the download at once.
// With [Client.API] in place of a source, gotd takes that for a timeout of the network
// and asks again, without a pause, until the deadline has come.
func (c *Client) FileSource(via tg.Invoker) downloader.Client {
	return source{Client: tg.NewClient(final{via}), client: c}
}

type source struct {
	*tg.Client
	client *Client
}

var _ downloader.CDNProvider = source{}

// CDN implements downloader.CDNProvider.
func (s source) CDN(ctx context.Context, dc int, max int64) (downloader.CDN, io.Closer, error) {
	p, err := s.client.CDN(ctx, dc, max)
	if err != nil {
		return nil, nil, err
	}
	return tg.NewClient(final{p}), p, nil
}

// final is an invoker whose refusals gotd's downloader does not try to sit out.
type final struct{ tg.Invoker }

func (f final) Invoke(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
	err := f.Invoker.Invoke(ctx, input, output)
	if refused, ok := errors.AsType[*ratelimit.RefusedError](err); ok {
		return &refusal{refused}
	}
	return err
}

// refusal is a RefusedError that does not match context.DeadlineExceeded.
type refusal struct{ *ratelimit.RefusedError }

// Is hides that of the RefusedError.
func (*refusal) Is(error) bool { return false }

// As finds the RefusedError.
func (r *refusal) As(target any) bool {
	refused, ok := target.(**ratelimit.RefusedError)
	if ok {
		*refused = r.RefusedError
	}
	return ok
}
