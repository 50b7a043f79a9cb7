package client

import (
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/updates/hook"

	"github.com/weirtg/weir/dispatch"
)

// dispatchUpdates puts a dispatcher in front of the update handler, and of the hooks
// that feed it with the answers to the program's own calls.
func (c *Client) dispatchUpdates(t *telegram.Options, opts Options) {
	d, ok := t.UpdateHandler.(*dispatch.Dispatcher)
	if !ok {
		if opts.Updates.Logger == nil {
			opts.Updates.Logger = opts.Logger
		}
		d = dispatch.New(t.UpdateHandler, opts.Updates)
		c.endUpdates = d.Close
	}
	c.updates = d
	for i, m := range t.Middlewares {
		if h, ok := m.(hook.UpdateHook); ok {
			t.Middlewares[i] = d.Hook(h)
		}
	}
	t.Middlewares = append([]telegram.Middleware{d.Differences()}, t.Middlewares...)
	t.UpdateHandler = d
}

// UpdatesWaiting returns how many updates wait for their handlers; see Options.Updates
// for the bound.
func (c *Client) UpdatesWaiting() int {
	if c.updates == nil {
		return 0
	}
	return c.updates.Waiting()
}
