package invoke

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/ratelimit"
)

// passingPatience is how long a notice that soon says nothing any more waits, for
// tokens and for floods each.
const passingPatience = 2 * time.Second

// isPassing reports whether a call is worth nothing once the moment has passed, so that
// it is better dropped than late: "is typing", shown after the message has come, is
// wrong.
func isPassing(method string) bool {
	switch method {
	case "messages.setTyping", "messages.setEncryptedTyping", "account.updateStatus":
		return true
	}
	return false
}

// isDifference reports whether a call asks for missed updates. gotd's engine of updates
// makes it and knows nothing of floods: an error there is a gap that stays, or an engine
// that ends. So the call waits, however long it takes.
func isDifference(method string) bool {
	switch method {
	case "updates.getState", "updates.getDifference", "updates.getChannelDifference":
		return true
	}
	return false
}

// threshold is the longest single flood wait that the call sits out: its own choice, or
// what its kind is worth, or the client's.
func (c *call) threshold() flood.Threshold {
	switch {
	case c.opt.noWait:
		return flood.Never
	case c.opt.threshold != flood.Default:
		return c.opt.threshold
	case isPassing(c.Method):
		return min(c.m.threshold, flood.UpTo(passingPatience))
	case isDifference(c.Method):
		return flood.Always
	default:
		return c.m.threshold
	}
}

// patience is the longest time that the call may still wait for floods.
func (c *call) patience() time.Duration {
	switch threshold := c.threshold(); threshold {
	case flood.Never:
		return 0
	case flood.Always:
		return math.MaxInt64
	default:
		sum := max(c.m.maxWait, time.Duration(threshold))
		return min(time.Duration(threshold), max(0, sum-c.slept))
	}
}

// retries is how often the call may be sent again after floods.
func (c *call) retries() int {
	if c.opt.threshold == flood.Default && isDifference(c.Method) {
		return math.MaxInt
	}
	return c.m.maxRetries
}

// queue waits for tokens, in the call's lane and for as long as it is worth.
func (c *call) queue(ctx context.Context, refused *ratelimit.RefusedError, gates []ratelimit.Gate) error {
	limiter := c.m.limiter.limiter
	waiting := ctx
	if isPassing(c.Method) {
		var release context.CancelFunc
		waiting, release = context.WithTimeout(ctx, passingPatience)
		defer release()
	}
	var err error
	if c.opt.background {
		err = limiter.BeginBackground(waiting, c.opt.cost, gates...)
	} else {
		err = limiter.Begin(waiting, c.opt.cost, gates...)
	}
	if waiting.Err() != nil && ctx.Err() == nil && errors.Is(err, waiting.Err()) {
		// It is not the caller's context that was done, and must not look like it.
		late := *refused
		late.Reason = ratelimit.ErrDeferred
		return &late
	}
	return err
}
