package client

import (
	"context"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
)

// pool is an invoker of gotd's with the choke point in front of it.
type pool struct {
	telegram.CloseInvoker
	choked telegram.InvokeFunc
}

// Invoke makes one raw call through the choke point.
func (p pool) Invoke(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
	return p.choked(ctx, input, output)
}

func (c *Client) choked(dc int, raw telegram.CloseInvoker, err error) (telegram.CloseInvoker, error) {
	if err != nil {
		return nil, err
	}
	c.learnDC()
	return pool{CloseInvoker: raw, choked: c.choke.HandleDC(dc, noteUnsent(raw))}, nil
}

// Pool opens up to max connections to the account's own data centre, 0 for no bound.
// Their calls pass the choke point like those of the client.
func (c *Client) Pool(max int64) (telegram.CloseInvoker, error) {
	raw, err := c.telegram.Pool(max)
	return c.choked(0, raw, err)
}

// DC opens up to max connections to another data centre and brings the
// authorisation there. It blocks until that is done or ctx is.
func (c *Client) DC(ctx context.Context, dc int, max int64) (telegram.CloseInvoker, error) {
	raw, err := c.telegram.DC(ctx, dc, max)
	return c.choked(dc, raw, err)
}

// MediaOnly is DC for the servers of a data centre that serve files only.
func (c *Client) MediaOnly(ctx context.Context, dc int, max int64) (telegram.CloseInvoker, error) {
	raw, err := c.telegram.MediaOnly(ctx, dc, max)
	return c.choked(dc, raw, err)
}

// CDN opens up to max connections to a CDN data centre, or shares those that are
// open.
func (c *Client) CDN(ctx context.Context, dc int, max int64) (telegram.CloseInvoker, error) {
	raw, err := c.telegram.CDN(ctx, dc, max)
	return c.choked(dc, raw, err)
}
