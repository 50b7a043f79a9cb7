package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
)

// grace is how long a Manager waits for a channel's difference. In that time all other
// channels may be held up. It is longer than most round trips to Telegram.
const grace = 250 * time.Millisecond

// differences are the requests for the differences of channels that take longer than
// grace.
type differences struct {
	mu      sync.Mutex
	pending map[int64]*difference
}

// difference is a request that is under way, or its answer that nobody took yet.
type difference struct {
	pts     int
	done    chan struct{} // closed when it is answered
	callers int           // those who wait for it
	ended   bool
	box     tg.UpdatesChannelDifferenceBox // once it has ended
	err     error
}

// Differences returns a middleware for a Dispatcher in front of an updates.Manager. Put
// it before all others.
//
// A Manager that waits for the difference of one channel takes ten more updates of that
// channel, and then none of any channel. So a request updates.getChannelDifference that
// is not answered within 250 ms, because it is flooded or the line is down, is
// answered here: nothing new yet, not final. It goes on meanwhile. Once it is answered,
// the Manager is made to ask again and gets that answer. Its updates are late; nobody
// else's are.
//
// In front of any other handler, and for any other request, it does nothing.
func (d *Dispatcher) Differences() telegram.Middleware {
	return telegram.MiddlewareFunc(func(next tg.Invoker) telegram.InvokeFunc {
		return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
			request, isRequest := input.(*tg.UpdatesGetChannelDifferenceRequest)
			box, isBox := output.(*tg.UpdatesChannelDifferenceBox)
			if d.inOrder && isRequest && isBox {
				if channel, ok := request.Channel.(*tg.InputChannel); ok {
					return d.difference(ctx, next, channel.ChannelID, request, box)
				}
			}
			return next.Invoke(ctx, input, output)
		}
	})
}

func (d *Dispatcher) difference(ctx context.Context, next tg.Invoker, channel int64, r *tg.UpdatesGetChannelDifferenceRequest, out *tg.UpdatesChannelDifferenceBox) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		x := d.ask(ctx, next, channel, *r)
		if x == nil {
			return next.Invoke(ctx, r, out) // closed
		}
		select {
		case <-x.done:
		case <-timer.C:
			timer.Reset(0) // for the next turn, if the answer has come all the same
		case <-ctx.Done():
		}
		if done, err := d.take(ctx, channel, x, r.Pts, out); done {
			return err
		}
	}
}

// take brings the answer to a caller that has waited. It reports false when there is an
// answer that does not fit, since it is for another pts.
func (d *Dispatcher) take(ctx context.Context, channel int64, x *difference, pts int, out *tg.UpdatesChannelDifferenceBox) (done bool, err error) {
	s := &d.differences
	s.mu.Lock()
	defer s.mu.Unlock()
	x.callers--
	switch {
	case x.ended && x.pts == pts:
		if s.pending[channel] == x {
			delete(s.pending, channel)
		}
		if x.err == nil {
			out.ChannelDifference = x.box.ChannelDifference
		}
		return true, x.err
	case ctx.Err() != nil:
		return true, ctx.Err()
	case x.ended:
		return false, nil
	}
	out.ChannelDifference = &tg.UpdatesChannelDifferenceEmpty{Pts: pts}
	return true, nil
}

// ask returns the request for the channel that is under way, or its answer if that was
// for the same pts; otherwise it makes a new one. It returns nil when the Dispatcher is
// closed.
func (d *Dispatcher) ask(ctx context.Context, next tg.Invoker, channel int64, r tg.UpdatesGetChannelDifferenceRequest) *difference {
	s := &d.differences
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.pending[channel]; x != nil && (!x.ended || x.pts == r.Pts) {
		x.callers++
		return x
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if s.pending == nil {
		s.pending = map[int64]*difference{}
	}
	x := &difference{pts: r.Pts, done: make(chan struct{}), callers: 1}
	s.pending[channel] = x
	d.running.Go(func() { d.await(ctx, next, channel, &r, x) })
	return x
}

// await makes the request and, if nobody waits for the answer any more, has the Manager
// ask for it.
func (d *Dispatcher) await(ctx context.Context, next tg.Invoker, channel int64, r *tg.UpdatesGetChannelDifferenceRequest, x *difference) {
	called, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	err := next.Invoke(called, r, &x.box)

	s := &d.differences
	s.mu.Lock()
	x.err, x.ended = err, true
	left := x.callers == 0
	if left && err != nil {
		delete(s.pending, channel) // the Manager asks again, and meets the error itself
	}
	close(x.done)
	s.mu.Unlock()
	if left && called.Err() == nil {
		u := channelTooLong(channel, x.pts)
		_ = d.add(chat{}, item{ctx: ctx, updates: u, handle: func(ctx context.Context) error {
			return d.handler.Handle(ctx, u)
		}})
	}
}
