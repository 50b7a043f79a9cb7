package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/adapt"
	"github.com/weirtg/weir/internal/breaker"
	"github.com/weirtg/weir/internal/floods"
	"github.com/weirtg/weir/ratelimit"
)

// call is one call on its way through the choke point.
type call struct {
	classify.Call
	m        *Middleware
	opt      choices
	pass     pass
	asksSelf bool          // who is logged in
	dc       int           // as the tracker of floods has it
	wire     *wire         // what it is sent on
	sent     int           // attempts that were dispatched
	sentAt   time.Time     // when the last of them was
	number   uint64        // of that on the line
	mark     adapt.Mark    // and what the limits that were learned knew then
	queued   bool          // at the gate of its chat, before the last of them
	gate     string        // where it waited last
	lost     int           // those of them whose connection was lost
	floods   int           // those of them that were flooded and count as retries
	slept    time.Duration // flood waits that count
	server   *tgerr.Error  // what the server said to the last of them
}

// insideKey marks the context of a call that goes first after a flood. gotd makes
// calls from inside others, and they must not wait for the one that they serve.
type insideKey struct{}

func (c *call) invoke(ctx context.Context, next tg.Invoker, input bin.Encoder, output bin.Decoder) error {
	for {
		pass, err := c.admit(ctx)
		if err != nil {
			return c.giveUp(c.unsent(ctx, err))
		}
		notice, err := c.send(ctx, pass, next, input, output)
		if c.repeat(ctx, input, err) {
			continue
		}
		if errors.Is(err, ErrNotSent) {
			return c.giveUp(fmt.Errorf("%s %w", c.Method, err))
		}
		switch {
		case err == nil:
			return nil
		case !notice.Waitable():
			return c.refused(ctx, err)
		}
		if err := c.flooded(ctx, pass, notice, err); err != nil {
			return c.giveUp(err)
		}
	}
}

// send dispatches the call. The notice is not waitable unless it was flooded.
func (c *call) send(ctx context.Context, pass floods.Pass, next tg.Invoker, input bin.Encoder, output bin.Decoder) (notice flood.Notice, err error) {
	answered := false
	defer func() {
		if !answered { // a panic below included
			c.m.limiter.tracker.Abandon(pass)
			c.wire.end(c.number, err)
		}
	}()
	if pass.Probe() {
		ctx = context.WithValue(ctx, insideKey{}, true)
	}
	c.m.limiter.tracker.Start(&pass)
	c.sent++
	c.number, c.sentAt = c.wire.leave(&c.pass, c.opt.cost)
	if !c.ridesFree() {
		c.mark = c.m.limiter.learned.Sent(c.counted())
	}
	err = c.dispatch(ctx, next, input, output)
	if errors.Is(err, ErrNotSent) {
		c.sent--
		c.wire.unsent(c.number)
		c.refund()
		return flood.Notice{}, err
	}
	if answered = err == nil; !answered {
		_, answered = tgerr.As(err)
	}
	if answered {
		c.wire.answered(c.number, c.sentAt)
	}
	if err == nil || c.arrived(output, err) {
		answered = true
		c.passed(ctx, pass)
		return flood.Notice{}, c.m.learn(ctx, c.breakerCall(), output)
	}
	notice, _ = flood.FromError(err)
	if answered && !notice.Waitable() {
		c.passed(ctx, pass)
	}
	return notice, err
}

// passed tells the tracker that the call came through. Those that had waited for it follow at
// the pace of their category, without the burst that has gathered meanwhile: the server's
// bucket has filled no faster than its own rate.
func (c *call) passed(ctx context.Context, pass floods.Pass) {
	l := c.m.limiter
	if opens := l.tracker.Opens(pass); opens.Scope >= flood.Method && opens.Calls > 1 && !c.ridesFree() {
		l.drain(c, opens.Scope)
	}
	for _, record := range l.tracker.Passed(pass) {
		l.learned.Refuted(record)
	}
	l.keeper.Remember(ctx)
}

// refused turns a permanent refusal into an error with a type of its own, and counts it. Any
// other error is returned as it came.
func (c *call) refused(ctx context.Context, err error) error {
	refused, stopped := c.m.limiter.breaker.Refused(c.breakerCall(), err)
	if stopped {
		c.m.logger.Error("Calls of this kind are no longer sent: the server refused too many",
			zap.String("method", c.Method), zap.Int("dc", c.m.limiter.number(c.dc)), zap.Error(refused))
		c.observe(Event{Kind: Stopped, Err: refused})
	}
	c.m.limiter.keeper.Remember(ctx)
	return refused
}

// dispatch calls next. Without an observer nobody wants to know how long it took.
func (c *call) dispatch(ctx context.Context, next tg.Invoker, input bin.Encoder, output bin.Decoder) error {
	if c.m.observer == nil {
		return next.Invoke(ctx, input, output)
	}
	err := next.Invoke(ctx, input, output)
	if errors.Is(err, ErrNotSent) {
		return err
	}
	c.observe(Event{Kind: Sent, Took: c.m.clock.Now().Sub(c.sentAt), Err: err})
	return err
}

// flooded remembers the flood and returns an error if it is not to be sat out.
func (c *call) flooded(ctx context.Context, pass floods.Pass, notice flood.Notice, err error) error {
	now := c.m.clock.Now() // a store and an observer may take longer than the flood
	return c.decide(ctx, c.m.limiter.flooded(c, pass, notice), now, notice, err)
}

// decide tells of a flood that was recorded at now and returns an error if it is not to be
// sat out.
func (c *call) decide(ctx context.Context, record flood.Record, now time.Time, notice flood.Notice, err error) error {
	c.m.limiter.keeper.Remember(ctx)
	record.DC = c.m.limiter.number(record.DC)
	left := record.Again.Sub(now)
	c.observe(Event{Kind: Flooded, Wait: notice.Wait, Notice: notice, Flood: record})
	c.server, _ = tgerr.As(err)

	// A file part that waits for want of Premium "must be automatically repeated":
	// it uses up neither retries nor the sum of waits.
	counts := notice.Kind != flood.PremiumWait
	var reason flood.Reason
	switch threshold := c.threshold(); {
	case !threshold.Allows(left):
		reason = flood.OverThreshold
	case counts && c.floods >= c.retries():
		reason = flood.OverRetries
	case counts && left > c.patience():
		reason = flood.OverBudget
	}
	c.log(record, notice, left, reason)
	if reason != 0 {
		return &flood.WaitError{
			Method: c.Method, Chat: int64(c.Peer), Kind: notice.Kind, Scope: record.Scope,
			Wait: left, Until: record.Again, Reason: reason,
		}
	}
	if counts {
		c.floods++
	}
	c.observe(Event{Kind: Retried, Wait: left})
	return nil
}

// log writes one line for a flood that is news. Files are flooded part by part, and
// a user of an account without Premium need not hear of it more than once an hour.
func (c *call) log(record flood.Record, notice flood.Notice, left time.Duration, reason flood.Reason) {
	period := time.Minute
	if notice.Kind == flood.PremiumWait {
		period = time.Hour
	}
	condensed, ok := c.m.condenser.first(c.Method+" "+notice.Kind.String(), period)
	if !ok {
		return
	}
	fields := []zap.Field{
		zap.String("method", c.Method), zap.Int("dc", c.m.limiter.number(c.dc)), zap.Int("attempt", c.sent),
		zap.Stringer("kind", notice.Kind), zap.Stringer("scope", record.Scope),
		zap.Duration("wait", left), zap.Time("until", record.Again),
	}
	if c.Peer != 0 {
		fields = append(fields, zap.Stringer("chat", c.Peer))
	}
	if condensed > 0 {
		fields = append(fields, zap.Int("not_logged_before", condensed))
	}
	if reason != 0 {
		c.m.logger.Warn("Flood, given up", append(fields, zap.Stringer("reason", reason))...)
		return
	}
	c.m.logger.Warn("Flood, waiting", fields...)
}

func (c *call) floodCall(ctx context.Context) floods.Call {
	call := floods.Call{
		DC:     c.dc,
		Method: c.Method,
		Chat:   int64(c.Peer),
		Reads:  reads(c.Category),
		Inside: ctx.Value(insideKey{}) != nil,
	}
	if !c.ridesFree() {
		call.Category = c.Category
	}
	return call
}

func (c *call) breakerCall() breaker.Call {
	return breaker.Call{DC: c.dc, Method: c.Method, Chat: int64(c.Peer), AsksSelf: c.asksSelf}
}

func reads(category classify.Category) bool {
	return category == classify.Query || category == classify.Bulk
}

// closed tells the end of the middleware from that of the caller's context.
func (c *call) closed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && c.m.life.Err() != nil {
		return ErrClosed
	}
	return err
}

// unsent tells of a context that was done before the call was sent: on the wire, such an
// error leaves open whether it arrived.
func (c *call) unsent(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause == nil || !errors.Is(err, cause) {
		return err
	}
	if _, ok := errors.AsType[*ratelimit.RefusedError](err); ok || errors.Is(err, ErrNoConnection) { // it says so itself
		return err
	}
	again := ""
	if c.sent > 0 {
		again = " again"
	}
	if c.gate == "" {
		return fmt.Errorf("%s not sent%s: %w", c.Method, again, err)
	}
	return fmt.Errorf("%s not sent%s, waiting at gate %s: %w", c.Method, again, c.gate, err)
}

// giveUp ends a call that was not sent, or not sent again.
func (c *call) giveUp(err error) error {
	err = c.signed(err)
	c.observe(Event{Kind: GivenUp, Err: err})
	return err
}

func (c *call) observe(e Event) {
	if c.m.observer != nil {
		c.tell(e)
	}
}

func (c *call) tell(e Event) {
	e.Method, e.Category, e.Chat, e.DC, e.Attempt = c.Method, c.Category, c.Peer, c.m.limiter.number(c.dc), c.sent
	if e.Kind == Queued || e.Kind == Admitted || e.Kind == GivenUp {
		e.Attempt++ // it is about to be sent, or would have been
	}
	c.m.tell(e)
}
