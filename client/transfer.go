package client

import (
	"context"
	"io"

	"github.com/gotd/td/telegram/downloader"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"
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
// A part that is refused, because its turn would come after the context's deadline or for
// any other reason, ends the download at once.
func (c *Client) FileSource(via tg.Invoker) downloader.Client {
	return source{Client: tg.NewClient(via), client: c}
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
	return tg.NewClient(p), p, nil
}
