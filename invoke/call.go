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
		if !notice.Waitable() {
			return c.refused(ctx, err)
		}
		if err := c.flooded(ctx, pass, notice, err); err != nil {
			return c.giveUp(err)
		}
	}
}

// admit waits until the call may be sent: no flood covers it and its tokens are
// taken.
func (c *call) admit(ctx context.Context) (floods.Pass, error) {
	tracker := c.m.limiter.tracker
	var w waits
	fc := c.floodCall(ctx)
	c.queued = false
	for {
		if c.m.life.Err() != nil {
			return floods.Pass{}, ErrClosed
		}
		if err := c.m.limiter.breaker.Check(c.breakerCall()); err != nil {
			return floods.Pass{}, err
		}
		if err := c.connected(ctx); err != nil {
			return floods.Pass{}, err
		}
		pass, err := c.enter(ctx, fc, &w)
		if err != nil {
			return floods.Pass{}, err
		}
		c.m.limiter.learned.ForgetRested(c.counted())
		c.m.limiter.learned.MakeRoom(c.counted())
		c.m.limiter.pacing(&c.pass, c.Peer)
		waited, err := c.acquire(ctx, pass, &w)
		if err != nil {
			tracker.Abandon(pass)
			return floods.Pass{}, err
		}
		covered := false
		if waited {
			pass, err = tracker.Wait(ctx, fc, 0)
			covered = err != nil
		} else {
			covered = tracker.Covered(fc, pass)
		}
		if !covered && c.m.outage.Load() == nil && !c.m.limiter.repaced(&c.pass, c.Peer) {
			if err := c.m.limiter.breaker.Check(c.breakerCall()); err != nil { // too many of those before it were refused
				tracker.Abandon(pass)
				c.refund()
				return floods.Pass{}, err
			}
			c.admitted(pass, &w)
			if c.m.life.Err() == nil { // the observer may end it too
				return pass, nil
			}
		}
		// A flood came while it waited for the tokens, or what its chat learned from one,
		// or the connection was lost, or the end.
		tracker.Abandon(pass)
		c.refund()
	}
}

// admitted tells the observer that the call is about to be sent. An observer can end the
// goroutine, as a test does that fails there. The call is then not sent, so it costs nothing
// and does not go first.
func (c *call) admitted(pass floods.Pass, w *waits) {
	returned := false
	defer func() {
		if !returned {
			c.m.limiter.tracker.Abandon(pass)
			c.refund()
		}
	}()
	c.observe(Event{Kind: Admitted, Wait: w.sum, Gate: w.gate})
	returned = true
}

// waits is what a call waited for before one attempt.
type waits struct {
	sum     time.Duration
	longest time.Duration
	gate    string // that of the longest
}

func (w *waits) note(gate string, waited time.Duration) {
	w.sum += waited
	if w.gate == "" || waited > w.longest {
		w.gate, w.longest = gate, waited
	}
}

// enter waits for the floods that are known.
func (c *call) enter(ctx context.Context, fc floods.Call, w *waits) (floods.Pass, error) {
	pass, err := c.m.limiter.tracker.Wait(ctx, fc, 0)
	known, ok := errors.AsType[*flood.WaitError](err)
	if !ok {
		return pass, err
	}
	patience := c.patience()
	if known.Wait > patience && known.Reason != flood.AnotherFirst || patience == 0 {
		return pass, err
	}
	c.gate = FloodGate
	c.observe(Event{Kind: Queued, Wait: known.Wait, Gate: FloodGate})
	waiting, release := c.m.join(ctx)
	defer release()
	pass, err = c.m.limiter.tracker.Wait(waiting, fc, patience)
	for again(err) {
		pass, err = c.m.limiter.tracker.Wait(waiting, fc, patience)
	}
	if known.Kind != flood.PremiumWait {
		c.slept += pass.Waited
	}
	w.note(FloodGate, pass.Waited)
	return pass, c.closed(ctx, err)
}

// again reports whether the patience of a call has ended only because the file part that
// goes first after a premium wait takes its time. That is the speed of the line, and no
// wait that anybody ordered.
func again(err error) bool {
	known, ok := errors.AsType[*flood.WaitError](err)
	return ok && known.Kind == flood.PremiumWait && known.Reason == flood.AnotherFirst
}

// acquire takes the call's tokens, but for those that a permit has paid. It tells
// whether it had to wait for them.
func (c *call) acquire(ctx context.Context, pass floods.Pass, w *waits) (waited bool, err error) {
	if !c.prepaid() {
		return c.take(ctx, pass, c.pass.all(), w)
	}
	waited, err = c.take(ctx, pass, c.pass.own(), w)
	if err != nil {
		c.m.limiter.limiter.Cancel(c.opt.cost, c.pass.shared()...)
	}
	return waited, err
}

func isChatGate(name string) bool {
	return name == PrivateGate || name == GroupGate || name == PaceGate
}

func (c *call) take(ctx context.Context, pass floods.Pass, gates []ratelimit.Gate, w *waits) (waited bool, err error) {
	limiter := c.m.limiter.limiter
	err = limiter.TryBegin(c.opt.cost, gates...)
	if err == nil || c.opt.noWait || errors.Is(err, ratelimit.ErrImpossible) {
		return false, err
	}
	refused, ok := errors.AsType[*ratelimit.RefusedError](err)
	if !ok {
		return false, err
	}
	// If it was to go first after a flood, it must not keep the others from it while it
	// waits for tokens that they may have.
	c.m.limiter.tracker.Abandon(pass)
	c.gate = refused.Gate
	c.observe(Event{Kind: Queued, Wait: refused.Wait, Gate: refused.Gate, Pending: refused.Pending})
	c.queued = c.queued || isChatGate(refused.Gate)
	waiting, release := c.m.join(ctx)
	defer release()
	start := c.m.clock.Now()
	err = c.queue(waiting, refused, gates)
	w.note(refused.Gate, c.m.clock.Now().Sub(start))
	return true, c.closed(ctx, err)
}

// prepaid uses the permit on the context, if it pays for this call. A permit pays
// for one dispatch: retries are charged.
func (c *call) prepaid() bool {
	p := c.opt.permit
	return p != nil && c.sent == 0 && c.pass.common > 0 && p.Cost() == c.opt.cost &&
		p.Pays(c.m.limiter.gates[c.Category]) && p.Use()
}

func (c *call) refund() { c.m.limiter.limiter.Cancel(c.opt.cost, c.pass.all()...) }

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
	if err == nil {
		return nil
	}
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
