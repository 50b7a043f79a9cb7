package invoke

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/pool"
	"github.com/gotd/td/rpc"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
)

// repeatPause is the pause before a call is sent again whose connection was lost, at first
// and at most. A line that is gone for long costs a try every two seconds.
const repeatPause, longestRepeatPause = 50 * time.Millisecond, 2 * time.Second

// engineClosed is in the text of the error that gotd has for an acknowledged call whose
// connection ended. It wraps context.Canceled and no error of its own.
const engineClosed = "engine forcibly closed"

// isLost reports whether a call ended because its connection did. Nobody knows then whether
// it has arrived. gotd repeats most such calls by itself, but not those that it was about to
// write.
func isLost(err error) bool {
	if errors.Is(err, ErrConnectionLost) {
		return true
	}
	if errors.Is(err, context.Canceled) {
		// The server had acknowledged the call when its connection ended.
		return strings.Contains(err.Error(), engineClosed)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false // of some context in gotd
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, lost := range [...]error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, pool.ErrConnDead, rpc.ErrEngineClosed,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// Repeatable reports whether it is safe to send a request twice: one that only reads, and
// one whose random_id makes the server take it once. Options.Categories change nothing about
// that.
func (m *Middleware) Repeatable(req bin.Encoder) bool {
	switch classify.Unwrap(req).(type) {
	case *tg.MessagesSendMessageRequest, *tg.MessagesSendMediaRequest, *tg.MessagesForwardMessagesRequest,
		*tg.MessagesSendMultiMediaRequest, *tg.MessagesSendInlineBotResultRequest:
		return true
	}
	return reads(m.standard.Call(req).Category)
}

// repeat waits a moment before a call is sent again whose connection was lost. It reports
// false if the call ends with err: it was not lost, it may have been done and would be done
// twice, it is not to wait, or its context is done.
func (c *call) repeat(ctx context.Context, input bin.Encoder, err error) bool {
	if err == nil || c.opt.noWait || ctx.Err() != nil || !isLost(err) || !errors.Is(err, ErrNotSent) && !c.m.Repeatable(input) {
		return false
	}
	c.lost++
	pause := min(repeatPause<<min(c.lost-1, 6), longestRepeatPause)
	timer := time.NewTimer(pause) // not Options.Clock: a connection keeps the system's time
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-c.m.life.Done():
		return false
	}
}

// arrived reports whether the answer to a repeated send says that the message had arrived
// before, and puts in place of the answer that was lost that there are updates to ask for.
func (c *call) arrived(output bin.Decoder, err error) bool {
	if c.lost == 0 || !tgerr.Is(err, "RANDOM_ID_DUPLICATE") {
		return false
	}
	box, ok := output.(*tg.UpdatesBox)
	if ok {
		box.Updates = &tg.UpdatesTooLong{}
	}
	return ok
}
