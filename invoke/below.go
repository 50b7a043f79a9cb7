package invoke

import (
	"context"
	"errors"

	"github.com/gotd/td/bin"

	"github.com/weirtg/weir/flood"
)

// Await blocks while a known flood covers a request that gotd makes below its middlewares, in
// the data centre dc (0 is the account's own), such as the first one of each connection. It
// takes no tokens.
//
// The error is a [*flood.WaitError] if the flood lasts longer than the threshold or than ctx,
// [ErrClosed] if the middleware is closed, or that of ctx.
func (m *Middleware) Await(ctx context.Context, dc int, request bin.Encoder) error {
	c := m.below(ctx, dc, request)
	if m.life.Err() != nil {
		return ErrClosed
	}
	pass, err := c.enter(ctx, c.floodCall(ctx), &waits{})
	if err != nil {
		return c.unsent(ctx, c.signed(err))
	}
	m.limiter.tracker.Abandon(pass)
	return nil
}

// SitOut remembers the flood that a request got which gotd made below its middlewares, as that
// of a call is remembered, and then blocks like [Middleware.Await]. It teaches no limit: such
// a request is charged to no category. An answer that is no flood is nothing to wait for.
func (m *Middleware) SitOut(ctx context.Context, dc int, request bin.Encoder, answer error) error {
	notice, ok := flood.FromError(answer)
	if !ok || !notice.Waitable() {
		return nil
	}
	c := m.below(ctx, dc, request)
	pass, err := m.limiter.tracker.Wait(ctx, c.floodCall(ctx), 0)
	if err == nil {
		m.limiter.tracker.Start(&pass)
		c.sent = 1
		record := m.limiter.tracker.Flooded(pass, notice)
		if err := c.decide(ctx, record, m.clock.Now(), notice, answer); err != nil {
			return c.signed(err)
		}
	}
	return m.Await(ctx, dc, request)
}

func (m *Middleware) below(ctx context.Context, dc int, request bin.Encoder) call {
	return call{m: m, Call: m.classifier.Call(request), opt: chosen(ctx), dc: m.limiter.trackerDC(dc)}
}

// signed adds to a WaitError what only the call knows.
func (c *call) signed(err error) error {
	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		wait.Attempts, wait.Server, wait.DC = c.sent, c.server, c.m.limiter.number(c.dc)
	}
	return err
}
