package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/invoke"
)

// noteUnsent is the innermost middleware. It tells the choke point of a call that ended before
// gotd wrote it to a connection, such as one whose context was done while there was none.
func noteUnsent(next tg.Invoker) telegram.InvokeFunc {
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		request := &request{Encoder: input}
		err := next.Invoke(ctx, request, output)
		if err != nil && !request.encoded.Load() {
			return fmt.Errorf("%w: %w", invoke.ErrNotSent, err)
		}
		return err
	}
}

// noteLost is noteUnsent for the main connection. A call that may be sent twice ends with the
// connection that it was sent on, so that the choke point sends it again when it is its turn.
// All others are left to gotd, which sends again what was not acknowledged, and which moves to
// another data centre from inside of a login.
func (c *Client) noteLost(next tg.Invoker) telegram.InvokeFunc {
	send := noteUnsent(next)
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		if !c.choke.Repeatable(input) {
			return send(ctx, input, output)
		}
		wire, release := c.conn.onTheWire(ctx)
		defer release()
		err := send(wire, input, output)
		if err != nil && ctx.Err() == nil && errors.Is(context.Cause(wire), invoke.ErrConnectionLost) {
			return fmt.Errorf("%w: %w", invoke.ErrConnectionLost, err)
		}
		return err
	}
}

// request notes whether gotd has encoded it, which it does just before it writes it.
type request struct {
	bin.Encoder
	encoded atomic.Bool
}

// Encode implements bin.Encoder.
func (r *request) Encode(b *bin.Buffer) error {
	r.encoded.Store(true)
	return r.Encoder.Encode(b)
}
